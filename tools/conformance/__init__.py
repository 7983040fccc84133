# SPDX-License-Identifier: Apache-2.0
"""`make conformance`: check the sandbox and the provider against public clients and the OpenAPI description."""
