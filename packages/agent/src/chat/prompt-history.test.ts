import { execFile } from 'node:child_process'
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { openPromptHistory } from './prompt-history.ts'

function createHome(): { readonly home: string; readonly listFiles: () => readonly string[] } {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-prompts-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const folder = join(home, 'prompts')
  return { home, listFiles: () => readdirSync(folder).map((name) => join(folder, name)) }
}

it('keeps prompts of several lines for later sessions of the same folder, readable only by the user', () => {
  const { home, listFiles } = createHome()
  const history = openPromptHistory(home, '/project')
  expect(history.prompts).toEqual([])
  history.add('One\n  two "three"')
  history.add('Four \u{1f30a}')
  expect(openPromptHistory(home, '/project').prompts).toEqual(['One\n  two "three"', 'Four \u{1f30a}'])
  expect(openPromptHistory(home, '/other').prompts).toEqual([])
  expect(listFiles().map((file) => statSync(file).mode & 0o777)).toEqual([0o600])
})

it('skips lines that are damaged, and does not keep a very long prompt', () => {
  const { home, listFiles } = createHome()
  openPromptHistory(home, '/project').add('One')
  for (const file of listFiles()) appendFileSync(file, '{"text":"ha\n[]\n{"text":5}\n')
  const history = openPromptHistory(home, '/project')
  history.add('x'.repeat(20_001))
  history.add('Two')
  expect(openPromptHistory(home, '/project').prompts).toEqual(['One', 'Two'])
})

it('is bounded: the newest prompts stay, in two files of a limited size', () => {
  const { home, listFiles } = createHome()
  const history = openPromptHistory(home, '/project')
  for (let turn = 0; turn < 400; turn += 1) history.add(`${turn} ${'x'.repeat(5_000)}`)
  const { prompts } = openPromptHistory(home, '/project')
  expect(prompts.map((text) => Number.parseInt(text, 10)).slice(-50)).toEqual(
    Array.from({ length: 50 }, (_, index) => 350 + index),
  )
  const sizes = listFiles().map((file) => statSync(file).size)
  expect(sizes).toHaveLength(2)
  expect(Math.max(...sizes)).toBeLessThan(300_000)
})

it('a lock that a killed process left does not let the file grow for ever', () => {
  const { home, listFiles } = createHome()
  const history = openPromptHistory(home, '/project')
  history.add('One')
  const lock = `${listFiles()[0]}.lock`
  writeFileSync(lock, '')
  utimesSync(lock, 0, 0)
  for (let turn = 0; turn < 120; turn += 1) history.add('x'.repeat(5_000))
  expect(Math.max(...listFiles().map((file) => statSync(file).size))).toBeLessThan(300_000)
})

it('a folder that cannot be written does not throw', () => {
  const { home } = createHome()
  writeFileSync(join(home, 'prompts'), 'a file')
  const history = openPromptHistory(home, '/project')
  expect(() => history.add('One')).not.toThrow()
})

it('several processes can write at once', async () => {
  const { home } = createHome()
  const source = JSON.stringify(join(import.meta.dirname, 'prompt-history.ts'))
  const script = (name: string): string =>
    `const { openPromptHistory } = await import(${source})
    const history = openPromptHistory(${JSON.stringify(home)}, '/project')
    for (let turn = 0; turn < 30; turn += 1) history.add('${name} ' + turn + '\\n' + 'y'.repeat(500))`
  const node = ['--conditions=tidemark-source', '--input-type=module', '-e']
  const names = ['a', 'b', 'c']
  await Promise.all(names.map((name) => promisify(execFile)(process.execPath, [...node, script(name)])))
  const { prompts } = openPromptHistory(home, '/project')
  const heads = prompts.map((text) => text.split('\n')[0])
  for (const name of names)
    expect(heads.filter((head) => head?.startsWith(name))).toEqual(
      Array.from({ length: 30 }, (_, turn) => `${name} ${turn}`),
    )
})
