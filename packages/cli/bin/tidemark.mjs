#!/usr/bin/env node
// Starts the build, or the sources where nothing is built (a checkout on a platform the bundler does not support).
// Syntax of the first Node with modules: an old Node must get far enough to print that it is too old.
import { existsSync } from 'node:fs'
import * as nodeModule from 'node:module'

const built = new URL('../dist/index.mjs', import.meta.url)
const source = new URL('../src/index.ts', import.meta.url)
const { node } = process.versions
const [major, minor] = node.split('.').map(Number)

if (major < 22 || (major === 22 && minor < 19)) {
  fail(`tidemark needs Node 22.19 or newer; this is Node ${node}.`)
} else if (existsSync(built)) {
  start(built)
} else if (!existsSync(source)) {
  fail('tidemark is not built: run `npm ci` or `npm run build` in its repository.')
} else if (!canRunSources()) {
  fail(`tidemark is not built, and its sources need Node 22.19, 24.5 or newer; this is Node ${node}.`)
} else {
  nodeModule.registerHooks({ resolve: resolveToSource })
  start(source)
}

function start(entry) {
  import(entry.href).then((cli) => cli.run(), reportFailure)
}

// Type stripping, and resolve hooks that may add a condition (absent from 23.x and 24.0 to 24.4).
function canRunSources() {
  return Boolean(process.features.typescript) && major !== 23 && !(major === 24 && minor < 5)
}

// What `node --conditions=tidemark-source` does, from inside the process.
function resolveToSource(specifier, context, nextResolve) {
  return nextResolve(specifier, { ...context, conditions: [...context.conditions, 'tidemark-source'] })
}

function reportFailure(error) {
  const missing = error.code === 'ERR_MODULE_NOT_FOUND' && process.env.TIDEMARK_DEBUG !== '1'
  fail(
    missing ? 'tidemark is not installed completely: install it again (in its repository: `npm ci`).' : error,
  )
}

function fail(reason) {
  console.error(reason)
  process.exitCode = 1
}
