import type { SessionEvent } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTranscript, toScreenText } from './transcript.ts'

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
          detail: { diffAt: 0, text: expect.stringContaining('lost: 5.0k') },
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
    expect(transcript.items).toMatchObject([{ text: 'a[2Jb' }])
  })
})
