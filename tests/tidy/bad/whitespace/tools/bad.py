# SPDX-License-Identifier: Apache-2.0
if True:
	pass
SPACE = 1 
END = 2