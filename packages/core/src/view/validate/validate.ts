/**
 * Would the provider take this request? Its rules are the profile's; a request without findings is one that
 * keeps all of them, as far as the request alone can tell. Every payload that goes out has none (the wire law).
 *
 * What alone cannot tell: whether a signature is genuine, whether thinking still stands behind the bytes it
 * was bound to, how many tokens the whole is, whether a tool named in old calls still exists.
 */
import { isObject } from '../../conversation/json.ts'
import type { Profile } from '../../policy/profile.ts'
import type { Payload } from '../payload.ts'
import type { Fields, Finding, Report } from './finding.ts'
import { checkMessage, finishMessages, startMessageCheck } from './messages.ts'
import { checkAround } from './request.ts'

/** Never throws, whatever `payload` is. Those of the request come first, then those of the messages, as met. */
export function validate(payload: Payload, profile: Profile): readonly Finding[] {
  const request: unknown = payload
  if (!isObject(request)) return [{ code: 'payload-shape', path: '', message: 'Expected an object.' }]
  const findings = checkRequest(request, profile)
  const { messages } = request
  if (!Array.isArray(messages)) {
    return [
      ...findings,
      { code: 'messages-shape', path: 'messages', message: 'Expected a list of messages.' },
    ]
  }
  let state = startMessageCheck(profile)
  for (const message of messages) state = checkMessage(state, message)
  return [...findings, ...finishMessages(state, request)]
}

/** The findings about everything but the messages: they stay the same as long as that does. */
export function checkRequest(request: Fields, profile: Profile): readonly Finding[] {
  const findings: Finding[] = []
  const report: Report = (code, path, message) => {
    findings.push({ code, path, message })
  }
  checkAround(request, { profile, report })
  return findings
}
