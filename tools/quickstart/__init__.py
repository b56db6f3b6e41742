# SPDX-License-Identifier: Apache-2.0
"""From files of this machine to eight ranks, the producer killed on the way, and a verdict.

`options` and `folder` say what is asked for and where it lies, `sources` puts the data together,
`live` runs the producer and the ranks (`rank`, which writes down what it got: `delivered`),
`tamper` spoils that on purpose, `stream` asks the command about the stream, and `report` prints.

The verdict shares no code with the product: `records` reads the raw files, `draws` says which parts
of them a step must have, `verdict` compares that with what was delivered.
"""
