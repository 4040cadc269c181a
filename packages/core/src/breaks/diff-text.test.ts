import { describe, expect, it } from 'vitest'
import { longTalk, requestOf } from '../../test/breaks/talk.ts'
import { diffText } from './diff-text.ts'
import type { SentRequest } from './sent.ts'

const before = requestOf(longTalk(), 0)
const plain = (text: string): string => text

function systemDiff(was: string, is: string, redact = plain): string {
  const named = (text: string): SentRequest => ({ ...before, system: [{ name: 'rules', text }] })
  const difference = { kind: 'section-changed', name: 'rules', characters: is.length - was.length } as const
  return diffText({ before: named(was), after: named(is), differences: [difference], parting: null }, redact)
}

describe('diffText', () => {
  it('shows what was and what is, from a little before the change', () => {
    expect(systemDiff('one\ntwo', 'one\nthree')).toBe(
      '@@ section rules of the system prompt changed (+2 characters) @@\n- one\n- two\n+ one\n+ three\n',
    )
  })

  it('leaves out what is the same in front', () => {
    const same = 'x'.repeat(500)
    expect(systemDiff(`${same}a`, `${same}b`).split('\n').slice(1, 3)).toEqual([
      `- …${'x'.repeat(80)}a`,
      `+ …${'x'.repeat(80)}b`,
    ])
  })

  it('shows parameters, tools that came and messages', () => {
    const tool = { name: 'New', text: '{"name":"New"}' }
    const text = diffText(
      {
        before,
        after: { ...before, tools: [...before.tools, tool] },
        differences: [
          { kind: 'effort-changed', before: 'high', after: null },
          { kind: 'tools-added', names: ['New'] },
        ],
        parting: null,
      },
      plain,
    )
    expect(text).toBe(
      '@@ the effort changed (high → not set) @@\n- high\n\n@@ tools were added (New) @@\n+ {"name":"New"}\n',
    )
  })

  it('is bounded', () => {
    const differences = Array.from(
      { length: 30 },
      (_, index) => ({ kind: 'tools-added', names: [`t${index}`] }) as const,
    )
    const tools = differences.map(({ names: [name = ''] }) => ({ name, text: name.repeat(9_000) }))
    const text = diffText({ before, after: { ...before, tools }, differences, parting: null }, plain)
    expect([text.length < 20_020, text.endsWith('\n… cut here\n')]).toEqual([true, true])
  })

  it('holds no secret: it is taken out before anything is cut', () => {
    const redact = (text: string): string => text.replaceAll(/key-\d{6}/g, '[redacted]')
    const text = systemDiff(`${'a'.repeat(1_992)} key-123456`, `${'b'.repeat(1_992)} key-654321`, redact)
    expect(text).not.toMatch(/key-|123|654/)
  })

  it('says so where only what is redacted changed', () => {
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    expect(systemDiff('token key-1', 'token key-2', redact)).toMatch(
      /\(the same but for what is redacted\)\n$/,
    )
  })

  it('redacts what the headings quote', () => {
    const differences = [
      { kind: 'parameter-changed', name: 'metadata', before: null, after: 'key-1' },
    ] as const
    const redact = (text: string): string => text.replaceAll(/key-\w+/g, '[redacted]')
    expect(diffText({ before, after: before, differences, parting: null }, redact)).not.toContain('key-1')
  })

  it('says that nothing changed where nothing did', () => {
    expect(diffText({ before, after: before, differences: [], parting: null }, plain)).toBe(
      'Nothing in the request changed.\n',
    )
  })
})
