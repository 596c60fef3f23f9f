//! Host memory outside the framework, with a stated alignment: whether a tensor may alias it depends on that.

use crate::values::Number;

/// Bytes that an aligned buffer is aligned to.
const BOUNDARY: usize = 64;

/// The memory as the numbers that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'a> {
    /// float32
    F32(&'a [f32]),
    /// float64
    F64(&'a [f64]),
    /// int64
    I64(&'a [i64]),
    /// uint64
    U64(&'a [u64]),
}

#[derive(Debug)]
enum Memory {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    U64(Vec<u64>),
}

/// Host memory on a 64-byte boundary, or one element past one.
#[derive(Debug)]
pub struct HostBuffer {
    memory: Memory,
    start: usize,
    count: usize,
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a buffer holds what its dtype holds")]
impl HostBuffer {
    /// Place numbers in new memory; `None` for a dtype that has no plain number in Rust.
    #[must_use]
    pub fn new(numbers: &[Number], aligned: bool, dtype: &str) -> Option<Self> {
        fn place<T: Default + Clone>(numbers: &[Number], aligned: bool, native: impl Fn(Number) -> T) -> (Vec<T>, usize) {
            let room = BOUNDARY / size_of::<T>();
            let mut memory = vec![T::default(); numbers.len() + 2 * room];
            let start = memory.as_ptr().align_offset(BOUNDARY) + usize::from(!aligned);
            for (place, number) in memory[start..].iter_mut().zip(numbers) {
                *place = native(*number);
            }
            (memory, start)
        }
        let (memory, start) = match dtype {
            "float32" => {
                let (memory, start) = place(numbers, aligned, |n| n.float() as f32);
                (Memory::F32(memory), start)
            }
            "float64" => {
                let (memory, start) = place(numbers, aligned, Number::float);
                (Memory::F64(memory), start)
            }
            "int64" => {
                let (memory, start) = place(numbers, aligned, |n| n.int() as i64);
                (Memory::I64(memory), start)
            }
            "uint64" => {
                let (memory, start) = place(numbers, aligned, |n| n.int() as u64);
                (Memory::U64(memory), start)
            }
            _ => return None,
        };
        Some(Self { memory, start, count: numbers.len() })
    }

    /// Return the memory as numbers.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        let place = self.start..self.start + self.count;
        match &self.memory {
            Memory::F32(memory) => View::F32(&memory[place]),
            Memory::F64(memory) => View::F64(&memory[place]),
            Memory::I64(memory) => View::I64(&memory[place]),
            Memory::U64(memory) => View::U64(&memory[place]),
        }
    }

    /// Overwrite every element, as a host program that reuses its buffer does.
    pub fn write(&mut self, number: Number) {
        let place = self.start..self.start + self.count;
        match &mut self.memory {
            Memory::F32(memory) => memory[place].fill(number.float() as f32),
            Memory::F64(memory) => memory[place].fill(number.float()),
            Memory::I64(memory) => memory[place].fill(number.int() as i64),
            Memory::U64(memory) => memory[place].fill(number.int() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(buffer: &HostBuffer) -> usize {
        match buffer.view() {
            View::F32(view) => view.as_ptr().addr(),
            View::F64(view) => view.as_ptr().addr(),
            View::I64(view) => view.as_ptr().addr(),
            View::U64(view) => view.as_ptr().addr(),
        }
    }

    #[test]
    fn alignment_is_what_was_asked_for() {
        let numbers = [Number::Float(2.0), Number::Float(3.0)];
        for _ in 0..8 {
            let (aligned, misaligned) = (HostBuffer::new(&numbers, true, "float32"), HostBuffer::new(&numbers, false, "float32"));
            assert_eq!(address(&aligned.expect("float32 is known")) % BOUNDARY, 0);
            assert_eq!(address(&misaligned.expect("float32 is known")) % BOUNDARY, 4);
        }
    }

    #[test]
    fn every_element_is_written_and_nothing_around_it_matters() {
        let mut buffer = HostBuffer::new(&[Number::Int((1 << 63) + 5), Number::Int(7)], true, "uint64").expect("uint64 is known");
        assert_eq!(buffer.view(), View::U64(&[(1 << 63) + 5, 7]));
        buffer.write(Number::Float(9.0));
        assert_eq!(buffer.view(), View::U64(&[9, 9]));
    }

    #[test]
    fn numbers_that_rust_has_no_type_for_make_no_buffer() {
        assert!(HostBuffer::new(&[], true, "complex128").is_none());
    }
}
