import { describe, expect, it } from 'vitest'
import { badRequests } from '../../../test/requests/bad.ts'
import { goodRequests } from '../../../test/requests/good.ts'
import {
  asPayload,
  assistant,
  call,
  fullProfile,
  request,
  result,
  user,
} from '../../../test/requests/make.ts'
import { strictProfile } from '../../policy/strict-profile.ts'
import { findingCodes } from './finding.ts'
import { validate } from './validate.ts'

describe('validate', () => {
  it.each(badRequests)('finds $why', ({ payload, findings, profile }) => {
    const found = validate(asPayload(payload), profile ?? fullProfile)
    expect(found.map(({ code, path }) => [code, path])).toEqual(findings)
  })

  it.each(goodRequests)('takes $why', ({ payload, profile }) => {
    expect(validate(asPayload(payload), profile ?? fullProfile)).toEqual([])
  })

  it('has a bad request for every code', () => {
    const shown = new Set(badRequests.flatMap(({ findings }) => findings.map(([code]) => code)))
    expect(findingCodes.filter((code) => !shown.has(code))).toEqual([])
  })

  it('says what was expected, naming every call without a result', () => {
    const payload = request([user('a'), assistant([call('t'), call('u'), call('v')]), user([result('u')])])
    expect(validate(asPayload(payload), fullProfile)).toEqual([
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
    expect(validate(asPayload(payload), strictProfile)).toEqual([])
  })
})
