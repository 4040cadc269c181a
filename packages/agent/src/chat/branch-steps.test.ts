import { createSimulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type Session } from 'tidemark'
import { SessionBuilder } from 'tidemark/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  findRedoStep,
  findUndoStep,
  isTurnInterrupted,
  listBranchPrompts,
  listFilesChangedSince,
} from './branch-steps.ts'

/** A session whose model edits a file for each prompt. */
async function openSession(): Promise<Session> {
  const script = withSummaries((request, { turn }) => {
    const path = JSON.stringify(request.messages).includes('the test') ? 'a.test.ts' : 'a.ts'
    return turn % 2 === 0
      ? {
          blocks: [
            { type: 'tool_use', name: 'Edit', input: { file_path: path, old_string: 'a', new_string: 'b' } },
          ],
        }
      : { blocks: [{ type: 'text', text: `Done. ${'word '.repeat(2_000)}` }] }
  })
  const { fetch } = createSimulator({ script })
  const model = anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch })
  const tide = createTidemark({ model, memory: true, env: {}, system: 'You are a coder.' })
  onTestFinished(() => tide.close())
  return tide.open('steps')
}

async function say(session: Session, prompt: string): Promise<void> {
  const tools = {
    Edit: { description: 'Edits.', inputSchema: { type: 'object' }, run: () => 'Edited.' },
  } as const
  const outcome = await session.run(prompt, { tools }).outcome
  if (!outcome.ok) throw new Error(outcome.message)
}

describe('a turn', () => {
  it('is interrupted until it is answered; a compaction does not change that', () => {
    const builder = new SessionBuilder()
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.user('Fix it.')
    expect(isTurnInterrupted(builder.records)).toBe(true)
    builder.call('Read', { file_path: 'a.ts' })
    builder.compact('They want it fixed.')
    expect(isTurnInterrupted(builder.records)).toBe(true)
    builder.answer('Done.')
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.compact('It is fixed.')
    expect(isTurnInterrupted(builder.records)).toBe(false)
    builder.user('And now?')
    builder.assistant('m', [{ type: 'text', text: 'Now we' }], { isInterrupted: true })
    expect(isTurnInterrupted(builder.records)).toBe(true)
  })
})

describe('what can be gone back to', () => {
  it('are the messages of the user, also those before a compaction, and the files changed since are named', async () => {
    const session = await openSession()
    await say(session, 'Fix it.')
    await session.compact()
    await say(session, 'And the test?')
    const prompts = await listBranchPrompts(session)
    expect(prompts).toMatchObject([
      { text: 'Fix it.', isCompacted: true },
      { text: 'And the test?', isCompacted: false },
    ])
    expect(await listFilesChangedSince(session, prompts[0]?.uuid ?? '')).toEqual(['a.ts', 'a.test.ts'])
    expect(await listFilesChangedSince(session, prompts[1]?.uuid ?? '')).toEqual(['a.test.ts'])
  })

  it('a compaction is named with its figures, a rewind with the message that it went back to', async () => {
    const session = await openSession()
    await say(session, 'Fix it.')
    await session.compact()
    expect(findUndoStep(session)?.name).toMatch(/^the compaction \([\d.]+k → [\d.]+k? tokens\)$/)
    await say(session, 'And the test?')
    const prompts = await listBranchPrompts(session)
    await session.rewind(prompts[1]?.uuid ?? '')
    expect(findUndoStep(session)?.name).toBe('/rewind to before “And the test?”')
    expect(findRedoStep(session)).toBeNull()
    await session.undo()
    expect(findRedoStep(session)?.name).toBe('/rewind')
  })
})
