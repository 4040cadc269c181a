import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const script = fileURLToPath(new URL('./hanging-process.ts', import.meta.url))

it('a process that hangs says what was under way and how to go on, and ends', () => {
  const ended = spawnSync(process.execPath, ['--conditions=tidemark-source', script], {
    encoding: 'utf8',
    timeout: 120_000,
  })
  expect(ended.signal).toBe('SIGKILL')
  expect(ended.stdout).toBe('still here\n')
  expect(ended.stderr).toBe(
    'tidemark: nothing has moved for 2 s, so the command was ended. Under way: Grep needle\nTo go on: tidemark chat --resume abc\n',
  )
})
