# SPDX-License-Identifier: Apache-2.0
"""From files to eight ranks, the producer killed on the way, and a verdict.

`options` and `folder` say what is asked for and where it lies. `data` puts pipeline and data there:
of Debian's packages (`debian`, which `packages` fetches), or of this machine (`machine`); both look
for documents by `gathering`, and `shard_files` writes them. `live` runs the producer and the ranks
(`rank`, which writes down what it got: `delivered`), `tamper` spoils that on purpose, `stream` asks
the command about the stream, `balance` about loads of ranks, and `report` prints; `report_files`
writes that down: a page (`report_md`, with `plots`), and figures that a `schema` describes.

The verdict shares no code with the product: `shards`, `ids` and `pictures` read the raw files,
`records` makes of them what a trainer must get, `draws` and `weights` say which parts a step must
have, and `verdict` compares that with what was delivered. `made_ids` compares ids that files hold
with the texts that they were made of.
"""
