/** What every source of ids does. */
import assert from 'node:assert/strict'
import type { Ids } from '@tidemark/core'
import { type ConformanceCase, casesFor } from './conformance.ts'

export function idsCases(make: () => Ids | Promise<Ids>): readonly ConformanceCase[] {
  return casesFor(make, () => {}, checks)
}

const KINDS = ['record', 'message', 'batch', 'lock']

const checks: Readonly<Record<string, (ids: Ids) => void>> = {
  'never gives an id twice, to whatever kind'(ids) {
    const given = Array.from({ length: 4_000 }, (_, index) => ids.next(KINDS[index % KINDS.length] ?? ''))
    assert.equal(new Set(given).size, given.length)
  },

  'gives ids that can stand in a file name and in JSON'(ids) {
    for (const kind of KINDS) assert.match(ids.next(kind), /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/)
  },
}
