import { describe, expect, it } from 'vitest'
import { ask, ClaudeLog, errors, state } from './exam-log-builder.ts'

describe('the latest instruction', () => {
  const noted = (text: string) =>
    state('Latest instruction:', '', ...text.split('\n').map((line) => `> ${line}`))

  it('is the last prompt, whatever programs wrote after it', () => {
    const log = new ClaudeLog()
      .user('First')
      .user('Fix the cart.\n\n  - and the tax')
      .user('Caveat of the program', { isMeta: true })
      .user('This session is being continued from …', { isCompactSummary: true })
      .user('<local-command-stdout>Bye</local-command-stdout>')
      .user('<task-notification>done</task-notification>')
      .user('A program speaks', { origin: { kind: 'task-notification' } })
      .record({ type: 'user', isSidechain: true, message: { content: 'Do the part of a subagent' } })
    const item = 'Fix the cart.\n\n  - and the tax'
    expect(ask('instruction', log, noted('Fix the cart.\n\n- and the tax'))).toEqual({ right: [item] })
    expect(ask('instruction', log, noted('First'))).toEqual({ contradicted: [item] })
    expect(ask('instruction', log, state('> Fix the cart.'))).toEqual({ missing: [item] })
  })

  it('may be cut to its first and last 500 characters', () => {
    const text = Array.from({ length: 300 }, (_, count) => `word${count}`).join(' \n ')
    const log = new ClaudeLog().user(text)
    expect(
      ask('instruction', log, noted(`${text.slice(0, 500)}\n…\n${text.slice(-500)}`)).right,
    ).toHaveLength(1)
    expect(ask('instruction', log, noted(`${text.slice(0, 500)}…`)).contradicted).toHaveLength(1)
    expect(
      ask('instruction', log, noted(`${text.slice(0, 400)}…${text.slice(-500)}`)).contradicted,
    ).toHaveLength(1)
  })

  it('may have come while the model worked, or beside a result', () => {
    const attachment = { type: 'queued_command', prompt: 'Also the tax', commandMode: 'prompt' }
    const queued = new ClaudeLog().user('Fix').record({ type: 'attachment', attachment })
    expect(ask('instruction', queued, noted('Also the tax')).right).toEqual(['Also the tax'])
    const beside = [
      { type: 'tool_result', tool_use_id: 'x', content: 'a' },
      { type: 'text', text: 'I am Kim' },
    ]
    expect(ask('instruction', new ClaudeLog().user('Fix').user(beside), noted('Fix')).contradicted).toEqual([
      'I am Kim',
    ])
  })

  it('is undecided if something newer may be one', () => {
    const slash = new ClaudeLog()
      .user('Fix')
      .user('<command-name>/plan</command-name><command-args>the tax</command-args>')
    expect(ask('instruction', slash, noted('Fix'))).toEqual({ undecided: ['Fix'] })
    const queue = new ClaudeLog()
      .user('Fix')
      .raw({ type: 'queue-operation', operation: 'enqueue', content: 'And?' })
    expect(ask('instruction', queue, noted('Fix'))).toEqual({ undecided: ['Fix'] })
    const back = queue.raw({ type: 'queue-operation', operation: 'popAll', content: 'And?' })
    expect(ask('instruction', back, noted('Fix'))).toEqual({ right: ['Fix'] })
  })

  it('contradicts if nobody typed one', () => {
    expect(ask('instruction', new ClaudeLog().bash('ls'), noted('Fix'))).toEqual({ contradicted: ['Fix'] })
  })

  it('is one of the branch: what a rewind took back is not asked', () => {
    const log = new ClaudeLog()
      .user('Fix the cart')
      .user('Drop the table')
      .user('Fix the tax', { parentUuid: 'record-1' })
    const item = 'Fix the tax'
    expect(ask('instruction', log, noted(item))).toEqual({ right: [item] })
    const wrong = new ClaudeLog().user('No, drop it').user('Fix', { parentUuid: null })
    expect(ask('corrections', wrong, errors())).toEqual({})
  })

  it('is found before a compaction, and before a record whose parent the log lacks', () => {
    const boundary = {
      type: 'system',
      subtype: 'compact_boundary',
      parentUuid: null,
      logicalParentUuid: 'lost',
    }
    const log = new ClaudeLog()
      .user('Fix')
      .record(boundary)
      .record({ type: 'progress', parentUuid: 'lost too' })
    expect(ask('instruction', log, noted('Fix'))).toEqual({ right: ['Fix'] })
  })
})

describe('corrections', () => {
  const noted = (...texts: string[]) =>
    errors('Corrections by the user:', ...texts.flatMap((text) => ['', `> ${text}`]))
  const refusal = (said: string) => [
    {
      type: 'tool_result',
      tool_use_id: 'x',
      is_error: true,
      content: `The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n${said}`,
    },
  ]

  it('are texts typed while refusing, after a refusal, or after an interruption, whatever their words', () => {
    const log = new ClaudeLog()
      .user('Start here')
      .user(refusal("as a separate change\n\nNote: The user's next message may contain a correction"))
      .user([{ type: 'text', text: '[Request interrupted by user]' }])
      .user('Look at the tax first')
      .user('Don’t touch the cart')
      .user(refusal('The user wants to clarify these questions.\n    This means'))
      .user('the second one')
      .user([{ type: 'text', text: '[Request interrupted by user]' }])
      .bash('ls')
      .user('Go on')
    expect(ask('corrections', log, noted('as a separate change', 'the second one'))).toEqual({
      right: ['as a separate change', 'the second one'],
      missing: ['Look at the tax first'],
    })
  })

  it('may be cut to 300 characters, and must be quoted one by one', () => {
    const text = `Wait, ${'x'.repeat(400)}`
    const stop = [{ type: 'text', text: '[Request interrupted by user]' }]
    const log = new ClaudeLog().user(stop).user(text).user(stop).user('Stop it')
    expect(ask('corrections', log, noted(`${text.slice(0, 300)}…`, 'Stop it')).right).toHaveLength(2)
    expect(ask('corrections', log, noted(`${text.slice(0, 200)}…`)).missing).toHaveLength(2)
    expect(ask('corrections', log, `${noted(text)}\n> Stop it`).missing).toHaveLength(2)
  })
})
