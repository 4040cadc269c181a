import type { SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { toScreenText } from './screen-text.ts'
import { formatRefusalReason } from './tool-views.ts'
import { createTranscript } from './transcript.ts'

const reply = (event: object): SessionEvent => ({ type: 'reply', event }) as never
const startText = (index: number, text = ''): SessionEvent =>
  reply({ type: 'block-started', index, block: { type: 'text', text } })
const grow = (index: number, text: string): SessionEvent =>
  reply({ type: 'block-grew', index, delta: { kind: 'text', text } })
const CALL = { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'ls' } } as const
const startCall = (index: number): readonly SessionEvent[] => [
  reply({ type: 'block-started', index, block: { ...CALL, input: {} } }),
  reply({ type: 'block-ended', index, block: CALL }),
]
const promptRecord = (text: string, uuid = 'u1'): object => ({
  type: 'user',
  uuid,
  parentUuid: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  sessionId: 's',
  message: { role: 'user', content: text },
})

describe('the transcript', () => {
  it('grows with the text of a reply, and ends with it', () => {
    const transcript = createTranscript()
    for (const event of [startText(0), grow(0, 'Hel'), grow(0, 'lo')]) transcript.apply(event)
    expect(transcript.items).toMatchObject([{ kind: 'answer', text: 'Hello', isStreaming: true }])
    transcript.apply(reply({ type: 'block-ended', index: 0, block: { type: 'text', text: 'Hello' } }))
    expect(transcript.items).toMatchObject([{ text: 'Hello', isStreaming: false }])
  })

  it('loses control sequences also if they arrive in pieces, and no text beside them', () => {
    const text = 'I\u001b]0;PWNED\u0007 read\u001b[31;1m it\u001b]52;c;UFdO\u001b\\,\r\nthe \u009b2Jend.'
    const shown = 'I read it,\nthe end.'
    for (let size = 1; size < text.length; size += 1) {
      const transcript = createTranscript()
      transcript.apply(startText(0))
      for (let at = 0; at < text.length; at += size) {
        transcript.apply(grow(0, text.slice(at, at + size)))
        const [item] = transcript.items
        expect(shown.startsWith(item?.kind === 'answer' ? item.text : '?')).toBe(true)
      }
      expect(transcript.items).toMatchObject([{ text: shown }])
      transcript.apply(
        reply({ type: 'block-ended', index: 0, block: { type: 'text', text: `${text}\u001b` } }),
      )
      expect(transcript.items).toMatchObject([{ text: shown, isStreaming: false }])
    }
  })

  it('says that a call was refused, by whom and why', () => {
    const refuse = (reason: string) => {
      const transcript = createTranscript()
      for (const event of startCall(0)) transcript.apply(event)
      const content = `The call was not permitted, and nothing was run. ${reason}`
      const result = { type: 'tool_result', tool_use_id: 't1', content, is_error: true }
      transcript.apply({ type: 'tool-ended', call: CALL, result } as never)
      const [item] = transcript.items
      if (item?.kind !== 'call') throw new Error('no call')
      expect(item.state).toBe('refused')
      return formatRefusalReason(item)
    }
    expect(refuse("The user refused it. The user said: don't touch it, fix it")).toBe(
      ": don't touch it, fix it",
    )
    expect(refuse('The user refused it.')).toBe('')
    expect(refuse('The rule Bash(ls:*) forbids it.')).toBe(': The rule Bash(ls:*) forbids it.')
  })

  it('marks what is no longer part of the conversation, and takes the mark back', () => {
    const transcript = createTranscript()
    for (const uuid of ['u1', 'u2']) {
      transcript.apply({ type: 'appended', records: [promptRecord('Go.', uuid)] } as never)
      transcript.apply(startText(0, 'Done.'))
    }
    const listLeft = (): readonly boolean[] => transcript.items.map(({ isLeft }) => isLeft === true)
    transcript.markLeft(new Set(['u1']))
    expect(listLeft()).toEqual([false, false, true, true])
    transcript.markLeft(new Set(['u1', 'u2']))
    expect(listLeft()).toEqual([false, false, false, false])
  })

  it('takes a reply back that broke off, with all its blocks', () => {
    const transcript = createTranscript()
    transcript.apply({ type: 'appended', records: [promptRecord('Go.')] } as never)
    for (const event of [startText(0, 'Half'), ...startCall(1)]) transcript.apply(event)
    transcript.apply({ type: 'reply-dropped', response: 'r', cause: {} } as never)
    expect(transcript.items.map(({ kind }) => kind)).toEqual(['prompt'])
  })

  it('shows a call from its first byte to its result, with the change to the file as it was before', () => {
    const transcript = createTranscript(() => [{ kind: 'added', text: 'new' }])
    for (const event of startCall(0)) transcript.apply(event)
    expect(transcript.items).toMatchObject([{ kind: 'call', state: 'waiting', input: { command: 'ls' } }])
    transcript.apply({ type: 'tool-started', call: CALL } as never)
    transcript.apply({ type: 'tool-progress', call: CALL, text: 'a\n' } as never)
    expect(transcript.items).toMatchObject([
      { state: 'running', progress: 'a\n', change: [{ kind: 'added', text: 'new' }] },
    ])
    const result = { type: 'tool_result', tool_use_id: 't1', content: 'a\nb', is_error: true }
    transcript.apply({ type: 'tool-ended', call: CALL, result } as never)
    expect(transcript.items).toMatchObject([{ state: 'failed', result: 'a\nb', progress: '' }])
  })

  it('marks calls without a result as interrupted when the turn ends', () => {
    const transcript = createTranscript()
    for (const event of startCall(0)) transcript.apply(event)
    transcript.apply({ type: 'turn-ended', outcome: {} } as never)
    expect(transcript.items).toMatchObject([{ state: 'interrupted' }])
  })

  it('is the same from the log of a session as from its events', () => {
    const transcript = createTranscript()
    const assistant = (content: readonly object[]): object => ({
      ...promptRecord(''),
      type: 'assistant',
      message: { id: 'm', role: 'assistant', model: 'x', content },
    })
    const result = { type: 'tool_result', tool_use_id: 't1', content: 'done' }
    transcript.replay([
      promptRecord('Go.'),
      assistant([{ type: 'text', text: 'I go.' }]),
      assistant([CALL]),
      { ...promptRecord(''), message: { role: 'user', content: [result] } },
    ] as never)
    expect(transcript.items).toMatchObject([
      { kind: 'prompt', text: 'Go.', uuid: 'u1' },
      { kind: 'answer', text: 'I go.', isStreaming: false },
      { kind: 'call', state: 'done', result: 'done' },
    ])
  })

  it('from a log has the lines of rewrites and cache breaks, each with what it opens to', () => {
    const system = (fields: object): object => ({ ...promptRecord('', 'b1'), type: 'system', ...fields })
    const loss = { source: 'main', reason: 'tools-added', tokens: 5_000, usd: 0.02 }
    const compactMetadata = { trigger: 'auto', cause: 'prepared', preTokens: 9_000, postTokens: 2_000 }
    const transcript = createTranscript()
    transcript.replay([
      system({ cacheLoss: { ...loss, kind: 'break', sentence: 'Cache broke: the tools changed.' } }),
      system({ cacheLoss: { ...loss, kind: 'act', sentence: 'Cleared; 5k re-cached.' } }),
      system({
        subtype: 'microcompact_boundary',
        microcompactMetadata: {
          trigger: 'auto',
          way: 'idle',
          preTokens: 9_000,
          tokensSaved: 4_000,
          compactedToolIds: ['t1', 't2'],
          clearedAttachmentUUIDs: [],
        },
      }),
      system({ subtype: 'compact_boundary', compactMetadata: { ...compactMetadata, summarizer: 'notes' } }),
      system({ subtype: 'epoch', epoch: { model: 'one' } }),
      system({ subtype: 'epoch', epoch: { model: 'two' } }),
    ] as never)
    const at = Date.parse('2026-01-01T00:00:00.000Z')
    const lines = transcript.items.map((item) => (item.kind === 'line' ? item.line : null))
    expect(lines).toMatchObject([
      {
        tone: 'warning',
        text: 'Cache broke: the tools changed.',
        detail: { diffAt: at, text: expect.stringContaining('Cost: $0.02') },
      },
      { mark: '$', text: 'Cleared; 5k re-cached.' },
      {
        text: 'Cleared 2 old tool results: 4.0k tokens freed',
        detail: { text: expect.stringContaining('Context: 9.0k → 5.0k tokens') },
      },
      {
        text: 'Swapped in a prepared summary: 9.0k → 2.0k tokens, with the notes of this session',
        detail: { compaction: { id: 'b1', hasReceipt: false } },
      },
      { text: 'The model is now two.' },
    ])
  })

  it('from a log does not have a reply that was taken back', () => {
    const transcript = createTranscript()
    const reply = (id: string, text: string): object => ({
      ...promptRecord('', id),
      type: 'assistant',
      message: { id, role: 'assistant', model: 'x', content: [{ type: 'text', text }] },
    })
    const dropped = { ...promptRecord('', 'd'), type: 'system', subtype: 'reply_dropped', response: 'm1' }
    transcript.replay([promptRecord('Go.'), reply('m1', 'Half'), dropped, reply('m2', 'Whole')] as never)
    expect(transcript.items).toMatchObject([{ text: 'Go.' }, { text: 'Whole' }])
  })

  it('of a long log shows its newest part, and says where the rest is', () => {
    const transcript = createTranscript()
    transcript.addLine({ tone: 'quiet', mark: '·', text: 'Before.', detail: null })
    transcript.replay(Array.from({ length: 400 }, (_, turn) => promptRecord(`Prompt ${turn}`)) as never)
    const { items } = transcript
    expect(items).toHaveLength(302)
    expect(items[0]).toMatchObject({ line: { text: 'Before.' } })
    expect(items[1]).toMatchObject({
      line: { text: expect.stringMatching(/^100 earlier items are in the log/) },
    })
    expect(items[2]).toMatchObject({ text: 'Prompt 100' })
    const ids = items.map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted((one, other) => one - other))
  })

  it('says why the notes are not used', () => {
    const transcript = createTranscript()
    transcript.apply({ type: 'sm-compact-threshold-exceeded', tokens: 21_000, threshold: 20_000 } as never)
    transcript.apply({ type: 'sm-compact-refused', reason: 'refused', message: 'No room.' } as never)
    expect(transcript.items).toMatchObject([
      { line: { text: expect.stringContaining('with them the context would have 21.0k tokens') } },
      { line: { text: 'The notes are not used: No room.' } },
    ])
  })

  it('has one line for a cache that has expired: what it was expected to cost gives way to what it did cost', () => {
    const transcript = createTranscript()
    transcript.apply({ type: 'resume-cost', sentence: 'The prompt cache has expired after 6 min.' } as never)
    expect(transcript.items).toHaveLength(1)
    const event = {
      ...{ at: 0, sentence: 'Cache broke: it has expired.', evidence: '', expected: 5_000, read: 0 },
      ...{ tokensLost: 5_000, moneyLost: 0.02, also: [], provider: null, ours: null },
      reason: { kind: 'expired' },
    }
    transcript.apply({ type: 'cache-break', event, diffProblem: null } as never)
    expect(transcript.items).toMatchObject([{ line: { text: expect.stringContaining('Cache broke') } }])
  })

  it('has one line for a cache break, which opens to its explanation', () => {
    const transcript = createTranscript()
    const event = {
      at: 0,
      sentence: 'Cache broke: the tools changed.',
      evidence: 'tool Read',
      expected: 5_000,
      read: 0,
      tokensLost: 5_000,
      moneyLost: 0.02,
      also: [],
      provider: null,
      ours: null,
      reason: { kind: 'tools-added', names: ['Read'] },
    }
    transcript.apply({ type: 'cache-break', event, diffProblem: null } as never)
    expect(transcript.items).toMatchObject([
      {
        kind: 'line',
        line: {
          text: 'Cache broke: the tools changed.',
          detail: { diffAt: 0, text: expect.stringContaining('0 of 5.0k tokens expected') },
        },
      },
    ])
  })

  it.each([
    ['moves the cursor', 'a\u001b[2Jb', 'ab'],
    ['sets the title', 'a\u001b]0;title\u0007b', 'ab'],
    ['writes the clipboard', 'a\u001b]52;c;aGk=\u001b\\b', 'ab'],
    ['begins a sequence that never ends', 'a\u001b]52;c', 'a'],
    ['uses control characters of one byte', 'a\u009d0;x\u009cb', 'a0;xb'],
    ['rings the bell and goes back', 'a\u0007\bb\rc', 'abc'],
    ['reverses the text', 'a\u202eb', 'ab'],
  ])('text that %s is shown without doing so', (_, text, shown) => {
    expect(toScreenText(text)).toBe(shown)
  })

  it('a sequence that arrives in two parts does not get out either', () => {
    const transcript = createTranscript()
    for (const event of [startText(0), grow(0, 'a\u001b'), grow(0, '[2Jb')]) transcript.apply(event)
    expect(transcript.items).toMatchObject([{ text: 'ab' }])
  })
})
