"""Who is asked: one module per framework, and the processes in which they answer.

The worker side (`base`, `interpret`, `timing`, `worker` and one module for each framework) is handed
to an interpreter over its standard input and needs nothing there but the framework. The controller
side (`targets`, `process`, `pool`, `phrases`) never imports a framework.
"""
