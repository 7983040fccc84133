"""The receiving side of the inbox: deliveries are taken in, stored, announced in order, served to readers, and pruned.

What touches the database stands in `tables`, `store` and `db_manager`; what keeps requests waiting for it in `writer`
and `feed`; the HTTP routes know both and no SQL. Only `plugin` and `cli` import this room, when they need it.
"""
