import {
  countPropertyRuns,
  createFakeBlobs,
  GeneratorChoices,
  generateSession,
  SessionBuilder,
} from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isKnownRecord } from '../log/record.ts'
import { buildSessionLog } from '../log/session-log.ts'
import { wrapInCodeBlock } from '../text/code-in-text.ts'
import { exportMarkdown, streamMarkdown } from './export-markdown.ts'

function createExampleSession(): SessionBuilder {
  const builder = new SessionBuilder()
  builder.user('Fix the login')
  builder.assistant('m1', [
    { type: 'thinking', thinking: 'Hm.' },
    { type: 'text', text: 'I look.' },
  ])
  builder.assistant('m1', [{ type: 'tool_use', id: 'call-1', name: 'Read', input: { file_path: '/a.md' } }])
  builder.result('call-1', '```js\nx\n```')
  builder.notice('microcompact_boundary', {
    microcompactMetadata: {
      trigger: 'auto',
      preTokens: 9,
      tokensSaved: 1_234,
      compactedToolIds: ['call-1'],
      clearedAttachmentUUIDs: [],
    },
  })
  builder.batch(() => {
    builder.notice('compact_boundary', {
      compactMetadata: {
        trigger: 'auto',
        cause: 'threshold',
        preTokens: 120_000,
        postTokens: 40_000,
        summarizer: 'model',
      },
      parentUuid: null,
    })
    builder.user('Summary: a login.', { isCompactSummary: true })
    builder.attachment({ type: 'todo', content: '[pending] ship </details>', itemCount: 1 })
  })
  return builder
}

const EXPECTED = `# Conversation told

- 8 records, 2023-11-14T22:13:21.000Z to 2023-11-14T22:13:28.000Z
- 1 compactions and 1 clearings are in force

### User · 2023-11-14T22:13:21.000Z · \`r-1\`

Fix the login

### Assistant (model-a) · 2023-11-14T22:13:22.000Z · \`r-2\`

<details><summary>Thinking</summary>

\`\`\`
Hm.
\`\`\`

</details>

I look.

<!-- r-3 -->

<details><summary>Call: Read — /a.md · <code>call-1</code></summary>

\`\`\`json
{
  "file_path": "/a.md"
}
\`\`\`

</details>

<!-- r-4 -->

<details><summary>Result of Read · <code>call-1</code> · 11 characters</summary>

\`\`\`\`
\`\`\`js
x
\`\`\`
\`\`\`\`

</details>

---

> **Cleared** 1 tool results from what the model is shown, 1,234 tokens freed: \`call-1\`. They are in this document in full. · \`r-5\`

---

> **Compacted** (auto, threshold, summary by model), from 120,000 to 40,000 tokens. A summary replaces 4 records, \`r-1\` to \`r-4\`. All of them are in this document. · \`r-6\`

### Summary of what came before · 2023-11-14T22:13:27.000Z · \`r-7\`

Summary: a login.

<details><summary>Attached: todo · <code>r-8</code></summary>

\`\`\`
<system-reminder>
The todo list.
[pending] ship </details>
</system-reminder>
\`\`\`

</details>
`

describe('a conversation as Markdown', () => {
  it('tells all of it, rewrites included, with ids', async () => {
    expect(await exportMarkdown(createExampleSession().session)).toBe(EXPECTED)
  })

  it('marks what a rewind left behind, and counts records of side agents', async () => {
    const builder = new SessionBuilder()
    const first = builder.user('start')
    builder.user('left')
    builder.user('taken', { parentUuid: first.uuid })
    builder.user('of an agent', { isSidechain: true })
    const text = await exportMarkdown(builder.session, { title: 'T' })
    expect(text.match(/^### .*$/gm)?.map((line) => line.split(' · ')[0])).toEqual([
      '### User',
      '### User (left behind by a rewind)',
      '### User',
    ])
    expect(text.split('\n').slice(0, 5)).toEqual([
      '# T',
      '',
      '- 4 records, 2023-11-14T22:13:21.000Z to 2023-11-14T22:13:24.000Z',
      '- 0 compactions and 0 clearings are in force',
      '- 1 records of side agents are not shown',
    ])
  })

  it('redacts messages and tool results, and leaves ids alone', async () => {
    const builder = new SessionBuilder()
    builder.user('my sesame')
    builder.assistant('sesame', [
      { type: 'tool_use', id: 'sesame', name: 'Bash', input: { command: 'echo sesame' } },
    ])
    builder.result('sesame', 'sesame')
    builder.attachment({ type: 'file', filename: '/a', content: 'sesame' })
    const text = await exportMarkdown(builder.session, {
      redact: (given) => given.replaceAll('sesame', '[gone]'),
    })
    expect(text.match(/.*sesame.*/g)).toEqual([
      '<details><summary>Call: Bash — echo [gone] · <code>sesame</code></summary>',
      '<details><summary>Result of Bash · <code>sesame</code> · 6 characters</summary>',
    ])
  })

  it('has large results whole where the blobs are given', async () => {
    const blobs = createFakeBlobs()
    const blob = await blobs.put(new TextEncoder().encode('all of it'))
    const builder = new SessionBuilder()
    builder.result('call-1', 'head and tail', {
      spilled: [{ toolUseId: 'call-1', part: null, blob, holds: 'text', bytes: 9 }],
    })
    const shown = async (given: object): Promise<boolean> =>
      (await exportMarkdown(builder.session, given)).includes('all of it')
    expect([await shown({}), await shown({ blobs })]).toEqual([false, true])
  })

  it('is the same for the same session, comes in pieces, and leaves out no message', async () => {
    const choices = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 200, size: 'max' })
    await fc.assert(
      fc.asyncProperty(choices, async (numbers) => {
        const { records } = generateSession(new GeneratorChoices(numbers))
        const text = await exportMarkdown(buildSessionLog(records))
        const pieces: string[] = []
        for await (const piece of streamMarkdown(buildSessionLog(JSON.parse(JSON.stringify(records)))))
          pieces.push(piece)
        expect(pieces.join('')).toBe(text)
        for (const record of records
          .filter(isKnownRecord)
          .filter(({ isSidechain }) => isSidechain !== true)) {
          if (record.type !== 'user' && record.type !== 'assistant') continue
          expect(text).toContain(record.uuid)
          for (const block of toBlocks(record.message.content).filter(isTextBlock))
            expect(text).toContain(block.text)
        }
      }),
      { numRuns: countPropertyRuns(25, 5) },
    )
  })
})

it('a fence is longer than any in what it holds', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('`', 'x', '\n'), maxLength: 30 }), (text) => {
      const lines = wrapInCodeBlock(text).split('\n')
      const fence = lines[0] ?? ''
      expect(lines.filter((line) => line.startsWith(fence))).toEqual([fence, fence])
    }),
  )
})
