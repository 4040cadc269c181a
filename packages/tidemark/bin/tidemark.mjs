#!/usr/bin/env node
// `npx tidemark`: the command is in @tidemark/cli. Runs the installed one of the same version, or offers to fetch it.
// Syntax of the first Node with modules: an old Node must get far enough to print that it is too old.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const installed = findInstalledCommand()

if (installed !== null) {
  import(pathToFileURL(installed).href).catch(fail)
} else {
  offerToFetch().catch(fail)
}

// The bin of @tidemark/cli beside this package or in the working directory, if its version is ours.
function findInstalledCommand() {
  for (const place of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      const manifest = createRequire(place).resolve('@tidemark/cli/package.json')
      if (JSON.parse(readFileSync(manifest, 'utf8')).version !== version) continue
      return join(dirname(manifest), 'bin', 'tidemark.mjs')
    } catch {
      // Not installed there.
    }
  }
  return null
}

async function offerToFetch() {
  const words = ['--yes', `@tidemark/cli@${version}`, ...process.argv.slice(2)]
  const shown = ['npx', ...words]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word}'`))
    .join(' ')
  console.error(
    `The tidemark command is in the package @tidemark/cli, which is not installed here.\n\n  ${shown}\n`,
  )
  if (!(await isWanted())) {
    console.error('Run the line above, or install it once: npm install --global @tidemark/cli')
    process.exitCode = 1
    return
  }
  const child = spawn('npx', words, { stdio: 'inherit', shell: process.platform === 'win32' })
  child.on('error', fail)
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 1
  })
}

// `npx --yes tidemark` has answered already; without a terminal nothing is fetched unasked.
async function isWanted() {
  if (process.env.npm_config_yes === 'true') return true
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await new Promise((resolve) => {
    prompt.question('Run it now? [Y/n] ', resolve)
    prompt.on('close', () => resolve('n'))
  })
  prompt.close()
  return /^(y(es)?)?$/i.test(answer.trim())
}

function fail(error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
