# SPDX-License-Identifier: Apache-2.0
"""Results in XCom, in files of several formats in any object storage, and media saved before its links expire.

Accepts results as the service sent them, as mappings with wire names. Imports no other package of the provider.
"""
