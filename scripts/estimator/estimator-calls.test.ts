import type { Block } from '@tidemark/core/log/block'
import { SYNTHETIC_MODEL } from '@tidemark/core/log/record'
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  listMeasuredCalls,
  listReminderTokens,
  type MeasuredCall,
  type RestartCheck,
} from './estimator-error.ts'

const text = (value: string): Block => ({ type: 'text', text: value })
const use = (id: string): Block => ({ type: 'tool_use', id, name: 'Read', input: {} })

function answer(
  builder: SessionBuilder,
  id: string,
  content: readonly Block[],
  context: number,
  more: object = {},
): void {
  const usage = { input_tokens: context, output_tokens: 1 }
  builder.assistant(id, content, {
    message: { id, role: 'assistant', model: 'model-a', content, usage, ...more },
  })
}

/** As `model context: said | heard`, with the reason of a break. */
function told(calls: readonly MeasuredCall[]): readonly string[] {
  const names = (blocks: readonly Block[]): string =>
    blocks.map((block) => String(block.text ?? block.id ?? `=${block.tool_use_id}`)).join(' ')
  return calls.map(
    ({ context, said, heard, broken }) =>
      `${context}: ${names(said)} | ${names(heard)}${broken === null ? '' : ` (${broken})`}`,
  )
}

function callsOf(tell: (builder: SessionBuilder) => void, isRestart?: RestartCheck): readonly string[] {
  const builder = new SessionBuilder()
  tell(builder)
  return told(listMeasuredCalls(builder.records, isRestart))
}

describe('listApiCalls', () => {
  it('gives what each call added: the response before it and all that came since', () => {
    const calls = callsOf((builder) => {
      builder.user('go')
      answer(builder, 'm1', [text('so')], 100)
      answer(builder, 'm1', [use('c1')], 100)
      builder.result('c1', 'c1')
      answer(builder, 'm1', [use('c2')], 100)
      builder.result('c2', 'c2')
      builder.user([text('and')])
      answer(builder, 'm2', [text('done')], 250)
      answer(builder, 'm3', [text('on')], 260)
    })
    expect(calls).toEqual(['100:  | go', '250: so c1 c2 | =c1 =c2 and', '260: done | '])
  })

  it('leaves out what is no call and what was not sent', () => {
    const calls = callsOf((builder) => {
      builder.user('go')
      answer(builder, 'm1', [text('a')], 100)
      builder.user([text('elsewhere')], { isSidechain: true })
      builder.attachment({ type: 'file', content: 'x' }, { isScreenOnly: true })
      builder.notice('info', { content: 'x' })
      answer(builder, 'm2', [text('b')], 0)
      answer(builder, 'm3', [text('c')], 300)
    })
    expect(calls).toEqual(['100:  | go', '300: a b | '])
  })

  const broken = (tell: (builder: SessionBuilder) => void, isRestart?: RestartCheck): string | undefined =>
    callsOf((builder) => {
      builder.user('go')
      answer(builder, 'm1', [text('a')], 100)
      tell(builder)
      answer(builder, 'm2', [text('b')], 150)
    }, isRestart)
      .at(-1)
      ?.match(/\(.*\)/)?.[0]

  it.each<[string, (builder: SessionBuilder) => void, string | undefined]>([
    ['nothing', () => {}, undefined],
    [
      'a boundary, whatever else there is',
      (builder) => {
        builder.notice('microcompact_boundary', { microcompactMetadata: { compactedToolIds: [] } as never })
        builder.notice('compact_boundary', {})
      },
      '(boundary)',
    ],
    [
      'a clearing',
      (builder) =>
        builder.notice('microcompact_boundary', { microcompactMetadata: { compactedToolIds: [] } as never }),
      '(clearing)',
    ],
    [
      'words the host put in the place of an answer',
      (builder) => {
        const message = { id: 's', role: 'assistant' as const, model: SYNTHETIC_MODEL, content: [text('…')] }
        builder.assistant('s', [], { message })
      },
      '(restart)',
    ],
    [
      'an error that was shown to the person',
      (builder) => {
        const message = { id: 's', role: 'assistant' as const, model: SYNTHETIC_MODEL, content: [text('…')] }
        builder.assistant('s', [], { message, isApiErrorMessage: true })
      },
      undefined,
    ],
    [
      'a prompt that goes back behind every response',
      (builder) => builder.user('again', { parentUuid: builder.records[0]?.uuid ?? null }),
      '(rewind)',
    ],
    [
      'a prompt behind a response that was not measured',
      (builder) => {
        answer(builder, 'cut-off', [text('x')], 0)
        builder.user('again')
      },
      undefined,
    ],
    [
      'a prompt whose parent is not in the log',
      (builder) => builder.user('again', { parentUuid: 'elsewhere' }),
      undefined,
    ],
  ])('a break: %s', (_, tell, reason) => {
    expect(broken(tell)).toBe(reason)
  })

  it('a break: back to an earlier response', () => {
    const calls = callsOf((builder) => {
      builder.user('go')
      answer(builder, 'm1', [text('a')], 100)
      const home = builder.tip
      builder.user('one way')
      answer(builder, 'm2', [text('b')], 150)
      builder.user('another way', { parentUuid: home })
      answer(builder, 'm3', [text('c')], 160)
      builder.user('further')
      answer(builder, 'm4', [text('d')], 180)
    })
    expect(calls.map((call) => call.match(/\(.*\)/)?.[0])).toEqual([
      undefined,
      undefined,
      '(rewind)',
      undefined,
    ])
  })

  it('a break: the host says so', () => {
    expect(
      broken(
        (builder) => builder.notice('hello'),
        (record) => record.type === 'system',
      ),
    ).toBe('(restart)')
  })

  it('a break: the provider cleared something itself', () => {
    const calls = callsOf((builder) => {
      answer(builder, 'm1', [text('a')], 100)
      answer(builder, 'm2', [text('b')], 90, { context_management: { applied_edits: [{ type: 'x' }] } })
      answer(builder, 'm3', [text('c')], 95, { context_management: { applied_edits: [] } })
    })
    expect(calls).toEqual(['100:  | ', '90: a |  (clearing)', '95: b | '])
  })
})

const RULE = { tools: ['Todo'], every: 3, tokens: 100 }
const thought: Block = { type: 'thinking', thinking: 'x' }
const call = (name: string): Block => ({ type: 'tool_use', id: 'c', name, input: {} })
const line = text('x')

const reminded = (...said: readonly (readonly Block[] | 'restart')[]): readonly number[] =>
  listReminderTokens(
    said.map(
      (blocks): MeasuredCall => ({
        model: 'm',
        context: 1,
        said: blocks === 'restart' ? [] : blocks,
        heard: [],
        endsTurn: false,
        broken: blocks === 'restart' ? 'restart' : null,
      }),
    ),
    RULE,
  )

describe('reminderTokens', () => {
  it.each<[string, readonly number[], readonly number[]]>([
    ['every third block', reminded([line], [line], [line], [line], [line], [line]), [0, 0, 100, 0, 0, 100]],
    ['several blocks at once', reminded([line, call('Read')], [line, call('Read')], [line]), [0, 100, 0]],
    ['thinking is no step', reminded([thought], [thought, line], [line], [thought, line]), [0, 0, 0, 100]],
    [
      'a tool that puts it off',
      reminded([line], [line], [call('Todo')], [line], [line], [line]),
      [0, 0, 0, 0, 0, 100],
    ],
    [
      'counted anew after a break',
      reminded([line], [line], 'restart', [line], [line], [line]),
      [0, 0, 0, 0, 0, 100],
    ],
  ])('%s', (_, tokens, expected) => {
    expect(tokens).toEqual(expected)
  })
})
