import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readReplyText } from '../../test/script-request.ts'
import { BUILT_IN_SCRIPT_NAMES, findNamedScript } from './built-in-scripts.ts'
import { createCoder } from './coder.ts'
import { loadScenario } from './load-script.ts'

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scripts-'))
})

afterAll(() => rm(folder, { recursive: true }))

async function load(name: string, content: string) {
  const path = join(folder, name)
  await writeFile(path, content)
  return loadScenario(path)
}

async function firstText(name: string, content: string): Promise<string> {
  const loaded = await load(name, content)
  return loaded.ok ? readReplyText(loaded.script) : loaded.message
}

/** The message about a file, without its folder. */
async function failure(name: string, content: string): Promise<string> {
  const loaded = await load(name, content)
  return loaded.ok ? 'loaded' : loaded.message.replaceAll(`${folder}/`, '')
}

describe('a script from a file', () => {
  it.each([
    ['a.yaml', 'turns: [{text: from yaml}]', 'from yaml'],
    ['a.yml', 'turns: [{text: from yml}]', 'from yml'],
    ['a.json', '{"turns": [{"text": "from json"}]}', 'from json'],
    ['a.mjs', "export default () => ({ blocks: [{ type: 'text', text: 'from mjs' }] })", 'from mjs'],
    [
      'a.ts',
      "const text: string = 'from ts'\nexport default () => ({ blocks: [{ type: 'text' as const, text }] })",
      'from ts',
    ],
  ])('%s', async (name, content, text) => {
    expect(await firstText(name, content)).toBe(text)
  })

  it.each([
    ['b.yaml', 'turns: [{txt: a}, {}]\n', /^b.yaml:1: turns\[0\].txt: is not known here; .* \(and 1 more\)$/],
    ['b.json', '{"turns": [', /^b.json:1: /],
    [
      'b.mjs',
      'export const script = 1',
      /^b.mjs: expected a default export that is a function \(request, context\) => reply$/,
    ],
    ['c.mjs', "import './none.mjs'\nexport default 1", /^c.mjs: cannot be loaded: .*none\.mjs/],
    ['d.mjs', "throw new Error('two\\nlines')", /^d.mjs: cannot be loaded: two lines$/],
  ])('%s is refused in one line', async (name, content, message) => {
    const said = await failure(name, content)
    expect(said).toMatch(message)
    expect(said).not.toContain('\n')
  })

  it('is rejected if it does not exist or has an unknown type', async () => {
    expect(await loadScenario(join('none', 'x.yaml'))).toEqual({
      ok: false,
      message: `${join('none', 'x.yaml')}: there is no such file`,
    })
    expect(await loadScenario(join('none', 'x.mjs'))).toEqual({
      ok: false,
      message: `${join('none', 'x.mjs')}: there is no such file`,
    })
    expect(await loadScenario('x.txt')).toMatchObject({
      ok: false,
      message: expect.stringMatching(
        /^x\.txt: expected a \.yaml, \.json, \.mjs, \.js or \.ts file, or one of echo, coder/,
      ),
    })
  })
})

describe('a script by name', () => {
  it.each(BUILT_IN_SCRIPT_NAMES)('%s', async (name) => {
    expect((await loadScenario(name)).ok).toBe(true)
  })

  it('with options', async () => {
    const loaded = findNamedScript('coder?turns=7&files=2&seed=x&task=Tea')
    const { tools } = createCoder()
    expect(loaded.ok ? await readReplyText(loaded.script, { tools }) : loaded.message).toMatch(
      /^Step 1 of 7: /,
    )
  })

  it.each([
    ['echo', /^<analysis>/],
    ['echo?summaries=none', /^Write an/],
    ['echo?summaries=error-text', /^API Error/],
  ])('%s answers a request for a summary with %s', async (name, text) => {
    const loaded = findNamedScript(name)
    const says = 'Write an <analysis> and a <summary>.'
    expect(loaded.ok ? await readReplyText(loaded.script, { says }) : loaded.message).toMatch(text)
  })

  it.each([
    ['coder?turns=0', `the coder's turns must be a whole number, not "0"`],
    [
      'coder?size=9',
      'the script coder has no option "size"; it has turns, files, resultTokens, textTokens, thinkingTokens, parallel, seed, task, summaries',
    ],
    ['echo?turns=9', 'the script echo has no option "turns"'],
    ['hang?a=1', 'the script hang has no option "a"'],
    ['echo?summaries=bad', /^summaries must be good, none, or one of empty, .*, not "bad"$/],
  ])('%s is refused', async (name, message) => {
    const loaded = await loadScenario(name)
    expect(loaded).toEqual({
      ok: false,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    })
  })
})
