#!/usr/bin/env node
// The command of this checkout; `npm start` runs it. Says so if the build is older than the sources, as after `git pull`.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

if (isBuildOld())
  console.error('tidemark: the build is older than the sources; `npm run build` in the checkout renews it.')
import('../packages/cli/bin/tidemark.mjs')

function isBuildOld() {
  try {
    const packages = fileURLToPath(new URL('../packages', import.meta.url))
    const built = statSync(join(packages, 'cli', 'dist', 'index.mjs')).mtimeMs
    return readdirSync(packages).some((name) => hasNewer(join(packages, name, 'src'), built))
  } catch {
    // Nothing is built, or nothing can be read: then the sources run, or the command says what is missing.
    return false
  }
}

function hasNewer(folder, time) {
  return readdirSync(folder, { withFileTypes: true }).some((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return hasNewer(path, time)
    return !entry.name.endsWith('.test.ts') && statSync(path).mtimeMs > time
  })
}
