#!/usr/bin/env node
// The command of this checkout; `npm start` runs it.
import '../packages/cli/bin/tidemark.mjs'
