# SPDX-License-Identifier: MIT
"""Virtual machines for rmpool's tests (Python standard library only)."""
