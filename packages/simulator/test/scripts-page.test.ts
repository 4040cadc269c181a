/** docs/simulator-scripts.md agrees with the code, and its examples run and print what they say. */
import { readFileSync } from 'node:fs'
import * as published from '@tidemark/simulator'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { readScheduledFault } from '../src/faults/fault-schedule.ts'
import { parseFault } from '../src/faults/parse-fault.ts'
import type { MessageParam } from '../src/protocol/messages-request.ts'
import { listReader, readDocument } from '../src/protocol/value-readers.ts'
import * as adversarial from '../src/scripts/bad-summarizers.ts'
import { findNamedScript } from '../src/scripts/built-in-scripts.ts'
import * as coding from '../src/scripts/coder.ts'
import { parseScenario } from '../src/scripts/parse-scenario.ts'
import { playScenario } from '../src/scripts/scenario.ts'
import * as summing from '../src/scripts/summarizer.ts'
import { assistant, call, context, request, result, user } from './script-request.ts'

const page = readFileSync(new URL('../../../docs/simulator-scripts.md', import.meta.url), 'utf8')

function blocks(language: string): readonly string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, text = '']) => text,
  )
}

/** The cells of the table with this first heading. */
function table(heading: string): readonly (readonly string[])[] {
  const rows = page
    .slice(page.indexOf(`\n| ${heading} |`))
    .split('\n')
    .slice(3)
  return rows
    .slice(
      0,
      rows.findIndex((row) => !row.startsWith('|')),
    )
    .map((row) =>
      row
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
}

/** The names in back quotes at the start of each row. */
function names(heading: string): readonly string[] {
  return table(heading).flatMap(([first = '']) =>
    [...first.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
}

type Run = (names: object, console: { log(...values: readonly unknown[]): void }) => Promise<void>

async function printed(source: string): Promise<readonly string[]> {
  const target = ts.ScriptTarget.ES2022
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { target, module: ts.ModuleKind.ESNext },
  })
  const body = outputText.replace(/^import (\{[^}]*\}) from '@tidemark\/simulator';?$/m, 'const $1 = names')
  const AsyncFunction = (async () => undefined).constructor as new (...parts: readonly string[]) => Run
  const lines: string[] = []
  const log = (...values: readonly unknown[]): void => void lines.push(values.join(' '))
  await new AsyncFunction('names', 'console', body)(
    { ...published, ...coding, ...summing, ...adversarial },
    { log },
  )
  return lines
}

describe('examples', () => {
  it.each(blocks('ts'))('print what they say (%#)', async (source) => {
    const expected = [...source.matchAll(/^console\.log\(.*\) \/\/ (.*)$/gm)].map(([, said]) => said)
    expect(expected.length).toBeGreaterThan(0)
    expect(await printed(source)).toEqual(expected)
  })

  it('the scenario plays as described', async () => {
    const [source = ''] = blocks('yaml')
    const parsed = parseScenario(source, 'login.yaml')
    if (!parsed.ok) throw new Error(parsed.problems.join('\n'))
    const script = playScenario(parsed.scenario)
    const failed = [user('Go'), assistant(call('a', 'Bash')), user(result('a', 'FAIL login'))]
    const courses: readonly (readonly MessageParam[])[] = [
      [user('Go')],
      [user('Go')],
      failed,
      failed,
      failed,
      [user('More?')],
    ]
    const seen: unknown[] = []
    for (const [turn, messages] of courses.entries()) {
      const reply = await script(request({ messages }), context({ turn }))
      seen.push(
        reply.fault ??
          reply.blocks.map((block) =>
            'text' in block ? block.text : 'name' in block ? block.name : block.type,
          ),
      )
    }
    expect(seen).toEqual([
      ['thinking', 'I look at src/login.ts first.', 'Read', 'Grep'],
      ['Now the tests.', 'Bash'],
      ['They fail. I mend src/login.ts.', 'Edit'],
      { type: 'status', status: 529 },
      ['Done after 5 turns.'],
      ['More?'],
    ])
  })

  it('the error is the one shown', () => {
    const [source = ''] = blocks('yaml')
    const parsed = parseScenario(source.replace('{ pattern: login, path: src }', 'login'), 'login.yaml')
    expect(parsed).toEqual({ ok: false, problems: blocks('text').map((text) => text.trim()) })
  })

  it('the scheduled faults can be read', () => {
    const [source = ''] = blocks('json')
    expect(readDocument(listReader(readScheduledFault), JSON.parse(source))).toEqual({
      ok: true,
      value: [
        { fault: { type: 'status', status: 529 } },
        { fault: { type: 'cut', insideCharacter: true }, times: 3 },
        { fault: { type: 'slow-drip', bytes: 16, ms: 20 }, every: 3 },
        { fault: { type: 'hang' }, skip: 5 },
      ],
    })
  })
})

describe('tables', () => {
  it('faults: each text means the data beside it', () => {
    const rows = table('written')
    expect(rows.length).toBe(12)
    for (const [written = '', , data = ''] of rows) {
      const [first = '', ...more] = [...written.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
      expect(parseFault(first)).toEqual({ ok: true, fault: JSON.parse(data.slice(1, -1)) })
      expect(more.filter((text) => !parseFault(text).ok)).toEqual([])
    }
  })

  it('adversaries: all of them', () => {
    expect(names('name').slice(3)).toEqual([])
    const all = [...page.slice(page.indexOf('### Adversaries')).matchAll(/^\| `([\w-]+)` \|/gm)].map(
      ([, name]) => name,
    )
    expect(all.slice(0, adversarial.BAD_SUMMARIZER_NAMES.length)).toEqual([
      ...adversarial.BAD_SUMMARIZER_NAMES,
    ])
  })

  it('the names of scripts, with their options', () => {
    const references = [
      ...names('name'),
      'echo?summaries=none',
      'coder?summaries=huge',
      'coder?turns=40&resultTokens=2000',
    ]
    expect(
      references.filter((reference) => !page.includes(`\`${reference}\``) || !findNamedScript(reference).ok),
    ).toEqual([])
  })

  it('scenarios: every field, and no other', () => {
    const known = (source: string): readonly string[] => {
      const parsed = parseScenario(source, 'x')
      return parsed.ok
        ? []
        : (/known: (.*)$/
            .exec(parsed.problems[0] ?? '')?.[1]
            ?.split(', ')
            .toSorted() ?? [])
    }
    expect(names('field of a scenario').toSorted()).toEqual(known('{x: 1, turns: []}'))
    expect(
      names('field of a turn')
        .filter((name) => name !== 'Read: {…}')
        .toSorted(),
    ).toEqual(known('turns: [{x: 1}]'))
    const conditions = new Set(names('condition').flatMap((name) => /^(\w+):/.exec(name)?.[1] ?? []))
    expect([...conditions].toSorted()).toEqual(known('turns: [{text: a, when: {x: 1}}]'))
  })

  it('scenarios: every condition can be read', () => {
    const written = names('condition')
      .map((name) => (/^\w+: /.test(name) ? name : `turn: ${name}`))
      .map((condition) => condition.replaceAll('\\|', '|'))
    const wrong = written.filter((each) => !parseScenario(`turns: [{text: a, when: {${each}}}]`, 'x').ok)
    expect(wrong).toEqual([])
  })

  it('the options of the coder, with their defaults', () => {
    const rows = table('option').map(([name, value]) => [name?.slice(1, -1), value])
    expect(rows).toEqual([
      ...Object.entries(coding.CODER_DEFAULTS).map(([name, value]) => [
        name,
        typeof value === 'string' ? `\`${value}\`` : String(value),
      ]),
      ['task', 'the prompt'],
    ])
  })
})
