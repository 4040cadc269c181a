/** Two processes on one session, on real files: each gets its turn by the lock, and nothing that was said is lost. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { isPrompt } from '@tidemark/core/log/record'
import { createFileJournal } from 'tidemark'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { listProgramArguments } from '../../packages/tidemark/test/child-process.ts'
import { createTestTidemark } from '../support/test-tidemark.ts'

const WRITER = fileURLToPath(new URL('./writing-process.ts', import.meta.url))
const COUNT = 12

let home = ''
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tidemark-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

async function write(name: string): Promise<void> {
  const given = JSON.stringify({ home, name, count: COUNT })
  await promisify(execFile)(process.execPath, [...listProgramArguments(WRITER), given])
}

async function promptsIn(folder: string): Promise<readonly string[]> {
  const journal = createFileJournal({ home: folder })
  const { session } = await readSessionState(journal, 'shared')
  await journal.close()
  return [...session.records].filter(isPrompt).map(({ message }) => String(message.content))
}

it('two processes say, run and compact by turns: every word of both is there once, in its own order', async () => {
  await Promise.all([write('Ann'), write('Ben')])
  const { tide, tools } = createTestTidemark({ home, turns: 1 })
  const session = await tide.open('shared')
  const told = (await promptsIn(home)).flatMap((text) => [...text.matchAll(/^(Ann|Ben) says (\d+)\.$/g)])
  for (const name of ['Ann', 'Ben']) {
    const numbers = told.filter(([, who]) => who === name).map(([, , number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: COUNT }, (_, index) => index))
  }
  expect(await session.run('Good night.', tools).outcome).toMatchObject({ ok: true })
  await tide.close()
})
