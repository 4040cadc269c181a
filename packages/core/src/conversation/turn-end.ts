/**
 * What ends a turn. Models that keep the thinking of the present turn alone leave it out as soon as a user
 * message holds anything but the results of calls: words, a picture, a reminder beside a result.
 */
import { type Block, blocksOf, type Content } from './block.ts'

/** More than an answer to a call. Requests to the cache are not said to anybody. */
export function goesBeyondResults({ type }: Block): boolean {
  return type !== 'tool_result' && type !== 'cache_edits'
}

/** Is the turn before it over with this message? */
export function endsTurn({ role, content }: { readonly role: string; readonly content: Content }): boolean {
  return role === 'user' && content !== '' && blocksOf(content).some(goesBeyondResults)
}
