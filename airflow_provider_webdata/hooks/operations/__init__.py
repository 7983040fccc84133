"""The hooks' methods, by resource: in each file what makes up the calls, the blocking methods, and their twins.

Both hooks inherit all of them, and give them the two ways to reach the service that `base` names.
"""
