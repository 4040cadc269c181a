#!/usr/bin/env node
// Nothing newer than the first modules here: an old Node must get far enough to be told that it is too old.
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < 22 || (major === 22 && minor < 12)) {
  console.error(`tidemark needs Node 22.12 or newer; this is Node ${process.versions.node}.`)
  process.exitCode = 1
} else {
  import('../dist/index.mjs').then((cli) => cli.run(), tellMissing)
}

function tellMissing(error) {
  const missing = error.code === 'ERR_MODULE_NOT_FOUND' && process.env.TIDEMARK_DEBUG !== '1'
  console.error(missing ? 'tidemark is not built: run `npm ci` or `npm run build` in its repository.' : error)
  process.exitCode = 1
}
