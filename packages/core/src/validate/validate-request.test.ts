import { countPropertyRuns } from '@tidemark/core/testing'
import { strictProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyPayload, someMessages, someSettings } from '../../test/requests/arbitrary.ts'
import { badRequests } from '../../test/requests/bad.ts'
import { goodRequests } from '../../test/requests/good.ts'
import {
  asPayload,
  assistant,
  call,
  fullProfile,
  mark,
  profileWith,
  request,
  result,
  system,
  text,
  thinking,
  user,
} from '../../test/requests/make.ts'
import type { ApiMessage } from '../context/payload.ts'
import { countJsonBytes, type Json } from '../log/json.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { PlacedMarker } from './content-rules.ts'
import { findingCodes } from './findings.ts'
import {
  checkMessage,
  finishRequestCheck,
  type MessageCheckState,
  startMessageCheck,
  validateRequest,
} from './validate-request.ts'

describe('validate', () => {
  it.each(badRequests)('finds $why', ({ payload, findings, profile }) => {
    const found = validateRequest(asPayload(payload), profile ?? fullProfile)
    expect(found.map(({ code, path }) => [code, path])).toEqual(findings)
  })

  it.each(goodRequests)('takes $why', ({ payload, profile }) => {
    expect(validateRequest(asPayload(payload), profile ?? fullProfile)).toEqual([])
  })

  it('has a bad request for every code', () => {
    const shown = new Set(badRequests.flatMap(({ findings }) => findings.map(([code]) => code)))
    expect(findingCodes.filter((code) => !shown.has(code))).toEqual([])
  })

  it('says what was expected, naming every call without a result', () => {
    const payload = request([user('a'), assistant([call('t'), call('u'), call('v')]), user([result('u')])])
    expect(validateRequest(asPayload(payload), fullProfile)).toEqual([
      {
        code: 'tool-result-missing',
        path: 'messages.1',
        message: 'Expected a tool_result for each tool_use in the next message; missing: t, v.',
      },
    ])
  })

  it('takes a plain conversation under the strictest profile', () => {
    const payload = {
      model: 'm',
      max_tokens: 9,
      tools: [{ name: 'read', input_schema: { type: 'object' } }],
      messages: [user('a'), assistant([call('t')]), user([result('t')])],
    }
    expect(validateRequest(asPayload(payload), strictProfile)).toEqual([])
  })
})

const profiles = fc.constantFrom(
  fullProfile,
  strictProfile,
  profileWith({ roles: { prefill: 'allowed' }, compaction: { blocks: false } }),
)

function checked(messages: readonly unknown[], from: MessageCheckState): MessageCheckState {
  return (messages as readonly ApiMessage[]).reduce(checkMessage, from)
}

function whole(
  settings: Readonly<Record<string, unknown>>,
  messages: readonly unknown[],
  profile: ProviderProfile,
): unknown {
  return validateRequest(asPayload({ ...settings, messages }), profile)
}

describe('the fold over messages', () => {
  it('gives from any kept state what it gives from scratch, however often and whatever was tried in between', () => {
    fc.assert(
      fc.property(
        someMessages,
        someMessages,
        someSettings,
        profiles,
        (messages, others, settings, profile) => {
          const expected = whole(settings, messages, profile)
          let state = startMessageCheck(profile)
          for (let split = 0; split <= messages.length; split += 1) {
            const [before, after] = [messages.slice(0, split), messages.slice(split)]
            expect(finishRequestCheck(state, settings)).toEqual(whole(settings, before, profile))
            const strayed = finishRequestCheck(checked(others, state), settings)
            expect(strayed).toEqual(whole(settings, [...before, ...others], profile))
            expect(finishRequestCheck(checked(after, state), settings)).toEqual(expected)
            if (split < messages.length) state = checkMessage(state, messages[split] as ApiMessage)
          }
        },
      ),
      { numRuns: countPropertyRuns(150, 30) },
    )
  })

  it('never takes a finding back', () => {
    fc.assert(
      fc.property(someMessages, profiles, (messages, profile) => {
        let state = startMessageCheck(profile)
        for (const message of messages) {
          const before = state.findings.toArray()
          state = checkMessage(state, message as ApiMessage)
          expect(state.findings.toArray(0, before.length)).toEqual(before)
        }
      }),
    )
  })

  it('does not look at what it has checked', () => {
    let looks = 0
    const watched = (message: object): object =>
      new Proxy(message, {
        get: (target, key, receiver) => {
          looks += 1
          return Reflect.get(target, key, receiver)
        },
      })
    const round = (id: string): readonly unknown[] => [
      watched(assistant([call(id)])),
      watched(user([result(id)])),
    ]
    const settled = checked([user('a'), ...round('t'), ...round('u')], startMessageCheck(fullProfile))
    looks = 0
    const state = checked([assistant([call('v')]), user([result('v'), text()])], settled)
    expect(finishRequestCheck(state, request([]))).toEqual([])
    expect(looks).toBe(0)
  })
})

describe('markers placed afterwards', () => {
  const messages = [
    user([text('a'), text('b')]),
    assistant([thinking(), call('t')]),
    user([result('t', { content: [text('c', mark())] }), text('d')]),
    system([text('e')], { clear_at: 'next_user_message' }),
    system('f'),
  ] as unknown as readonly ApiMessage[]
  const places = messages.flatMap((message, index) =>
    typeof message.content === 'string' ? [] : message.content.map((_, block) => [index, block] as const),
  )
  const controls = fc.constantFrom<Json>(
    { type: 'ephemeral' },
    { type: 'ephemeral', ttl: '1h' },
    { type: 'ephemeral', ttl: 'x' },
    'no',
  )

  const applied = (placed: readonly PlacedMarker[]): readonly unknown[] =>
    messages.map((message, index) => ({
      ...message,
      content: Array.isArray(message.content)
        ? message.content.map((block: object, at: number) => {
            const marker = placed.find((one) => one.index === index && one.block === at)
            return marker === undefined ? block : { ...block, cache_control: marker.control }
          })
        : message.content,
    }))

  it('are judged as if they had been there', () => {
    const state = checked(messages, startMessageCheck(fullProfile))
    const some = fc
      .subarray(places)
      .chain((list) =>
        fc.tuple(fc.constant(list), fc.array(controls, { minLength: list.length, maxLength: list.length })),
      )
    fc.assert(
      fc.property(some, someSettings, ([list, wanted], settings) => {
        const placed = list.map(([index, block], at) => ({
          message: messages[index] as ApiMessage,
          index,
          block,
          control: wanted[at] as Json,
        }))
        const inOrder = (findings: unknown): readonly string[] =>
          (findings as readonly object[]).map((finding) => JSON.stringify(finding)).sort()
        const found = finishRequestCheck(state, settings, placed)
        expect(inOrder(found)).toEqual(inOrder(whole(settings, applied(placed), fullProfile)))
      }),
    )
  })

  it('count among the bytes', () => {
    const placed = [
      { message: messages[0] as ApiMessage, index: 0, block: 1, control: { type: 'ephemeral' } },
    ]
    const settings = request([])
    const bytes = countJsonBytes({ ...settings, betas: undefined, messages: applied(placed) }) ?? 0
    for (const [bodyBytes, codes] of [
      [bytes, []],
      [bytes - 1, ['body-size']],
    ] as const) {
      const state = checked(messages, startMessageCheck(profileWith({ sizes: { bodyBytes } })))
      expect(finishRequestCheck(state, settings, placed).map(({ code }) => code)).toEqual(codes)
    }
  })

  it('need a block to stand on', () => {
    const state = checked(messages, startMessageCheck(fullProfile))
    const at = (index: number, block: number): PlacedMarker => ({
      message: messages[index] as ApiMessage,
      index,
      block,
      control: { type: 'ephemeral' },
    })
    const found = finishRequestCheck(state, request([]), [at(0, 9), at(4, 0)])
    expect(found.map(({ code, path }) => [code, path])).toEqual([
      ['marker-refused', 'messages.0.content.9.cache_control'],
      ['marker-refused', 'messages.4.content.0.cache_control'],
    ])
  })
})

describe('any payload', () => {
  it('gets an answer: known codes, at places it has', () => {
    const codes: ReadonlySet<string> = new Set(findingCodes)
    fc.assert(
      fc.property(anyPayload, profiles, (payload, profile) => {
        for (const { code, path, message } of validateRequest(asPayload(payload), profile)) {
          expect([codes.has(code), message.startsWith('Expected ')]).toEqual([true, true])
          const parent = path.split('.').slice(0, -1)
          const holder = parent.reduce<unknown>(
            (value, key) => (value as Record<string, unknown>)[key],
            payload,
          )
          expect([path, holder]).not.toEqual([path, undefined])
        }
      }),
      { numRuns: countPropertyRuns(2000, 150) },
    )
  })

  it('may be bottomless', () => {
    let depths: unknown = 'bottom'
    for (let level = 0; level < 20_000; level += 1) depths = [result('t', { content: depths })]
    const found = validateRequest(
      asPayload(request([user('a'), assistant([call('t')]), user(depths)])),
      fullProfile,
    )
    expect(found.map(({ code, path }) => [code, path])).toEqual([
      ['block-refused', 'messages.2.content.0.content.0'],
    ])
  })

  it('is as large as its JSON', () => {
    fc.assert(
      fc.property(someMessages, someSettings, (messages, settings) => {
        const bytes = countJsonBytes({ ...settings, betas: undefined, messages }) ?? 0
        const isOver = (bodyBytes: number): boolean => {
          const from = startMessageCheck(profileWith({ sizes: { bodyBytes } }))
          return finishRequestCheck(checked(messages, from), settings).some(
            ({ code }) => code === 'body-size',
          )
        }
        expect([isOver(bytes), isOver(bytes - 1)]).toEqual([false, true])
      }),
      { numRuns: countPropertyRuns(50, 12) },
    )
  })
})
