/**
 * `npm test`: the check (formatter, linter, types) and the tests at the same time, because the check leaves a core idle.
 * What the check finds is printed in one piece; the tests go on, and the run has failed. Arguments are those of `vitest run`.
 * On a machine without Postgres, that of npm is installed before.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { installPostgres } from '../test/support/postgres-programs.ts'

installPostgres((line) => console.error(line))
const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')))
const tests = spawn(process.execPath, [vitest, 'run', ...process.argv.slice(2)], { stdio: 'inherit' })
const check = spawn('npm run --silent check', { shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
const testsEnded = once(tests, 'exit')

let printed = ''
for (const output of [check.stdout, check.stderr])
  output.on('data', (data: Buffer) => {
    printed += String(data)
  })
const [checkCode] = await once(check, 'close')
if (checkCode !== 0) console.error(`\nnpm run check failed:\n${printed}`)
const [testCode] = await testsEnded
if (checkCode !== 0) console.error('npm run check failed, see above.')
process.exitCode = checkCode === 0 ? (testCode ?? 1) : 1
