/** What a platform throws when there is no response at all: the connection failed, took too long or was let go. */
import { type Failure, isObject } from '@tidemark/core'
import { given } from '../given.ts'
import { failure } from './classify.ts'

const TIMED_OUT = /^(?:ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)$/

/** `aborted`: our own signal was the cause, whatever the platform calls it. */
export function failureOfThrown(thrown: unknown, aborted = false): Failure {
  const chain = causes(thrown)
  const message = chain.map(messageOf).find((text) => text !== '') ?? 'The connection failed'
  if (aborted || chain.some((each) => nameOf(each) === 'AbortError')) return failure('aborted', message)
  const codes = chain.flatMap(codeOf)
  const late =
    codes.some((code) => TIMED_OUT.test(code)) || chain.some((each) => nameOf(each) === 'TimeoutError')
  return { ...failure(late ? 'timeout' : 'network', message), ...given({ errorCode: codes[0] }) }
}

/** Platforms wrap: "fetch failed" is caused by what really happened. */
function causes(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (
    let each = thrown;
    each !== undefined && chain.length < 5;
    each = isObject(each) ? each.cause : undefined
  )
    chain.unshift(each)
  return chain
}

function messageOf(each: unknown): string {
  if (typeof each === 'string') return each
  return isObject(each) && typeof each.message === 'string' ? each.message : ''
}

function nameOf(each: unknown): string {
  return isObject(each) && typeof each.name === 'string' ? each.name : ''
}

function codeOf(each: unknown): readonly string[] {
  return isObject(each) && typeof each.code === 'string' ? [each.code] : []
}
