import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseSymbols, createTimeFormat, type Screen } from '@tidemark/terminal/render/screen'
import picocolors from 'picocolors'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { playTour } from './tour.ts'
import { checkSurvivors } from './tour-checks.ts'
import { FIRST_PROMPT, OPEN_TODO } from './tour-job.ts'
import {
  createKeepableTourFolder,
  createTourFolder,
  findKeptTourProject,
  runProjectTests,
} from './tour-project.ts'
import { renderTourStep, type TourStep } from './tour-steps.ts'

/** Temporary folders of these tests go here, so that what is left over can be seen. */
const temporary = mkdtempSync(join(tmpdir(), 'tidemark-tour-test-'))
const given = process.env.TMPDIR
let steps: readonly TourStep[] = []

beforeAll(async () => {
  process.env.TMPDIR = temporary
  const told: TourStep[] = []
  for await (const step of playTour()) told.push(step)
  steps = told
})

afterAll(() => {
  if (given === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = given
  rmSync(temporary, { recursive: true, force: true })
})

function listScenes(): readonly (readonly TourStep[])[] {
  const starts = steps.flatMap(({ kind }, index) => (kind === 'scene' ? [index] : []))
  return starts.map((start, number) => steps.slice(start, starts[number + 1]))
}

/** Returns the data of all steps that have some, in order. */
function listData(scene: readonly TourStep[]): readonly Readonly<Record<string, unknown>>[] {
  return scene.flatMap((step) => ('data' in step && step.data !== undefined ? [step.data] : []))
}

describe('the tour', () => {
  it('says that the model is simulated, and shows tests that really fail', () => {
    const [scene = []] = listScenes()
    expect(scene.map(({ text }) => text).join(' ')).toContain('The model is simulated')
    expect(listData(scene)).toEqual([
      { tests: { passed: 3, failed: 4, firstFailure: 'a mug costs what the catalogue says' } },
    ])
  })

  it('shows that the plain loop is refused before the job is done', () => {
    const [, scene = []] = listScenes()
    const [refused, end] = listData(scene)
    expect(refused?.refusal).toMatch(/^prompt is too long: \d+ tokens > 30000 maximum$/)
    expect(end).toEqual({
      tests: { passed: 5, failed: 2, firstFailure: 'shares of an amount add up to it' },
      dollars: expect.closeTo(0.095, 2),
    })
  })

  it('shows every kind of rewrite, an explained cache break and a recovered refusal', () => {
    const [, , before = [], after = []] = listScenes()
    expect(listData(before).map(({ kind }) => kind)).toEqual(['cleared', 'cleared'])
    const told = listData(after)
    expect(told.map(({ kind, cause, reason }) => [kind, cause ?? reason])).toEqual([
      ['cache-break', 'expired'],
      ['refused', undefined],
      ['compacted', 'reactive'],
      ['compacted', 'threshold'],
      [undefined, undefined],
    ])
    const [broken, , compacted] = told
    expect(broken?.moneyLost).toBeGreaterThan(0.01)
    expect(compacted?.restored).toContain('todos:')
    expect(Number(compacted?.tokensAfter)).toBeLessThan(Number(compacted?.tokensBefore) / 2)
    expect(told.at(-1)).toEqual({ tests: { passed: 7, failed: 0, firstFailure: null } })
  })

  it('ends with statements that were checked, all of them true', () => {
    const checks = steps.filter((step) => step.kind === 'check')
    expect(checks.map(({ isTrue }) => isTrue)).toEqual([true, true, true, true, true, true])
    expect(checks[0]?.text).toContain('rules included, is in the last request word for word.')
  })

  it('prints the bill of the simulator, with Tidemark below the plain loop that finished', () => {
    const [stopped, ours, plain, uncached] = steps.flatMap((step) => (step.kind === 'bills' ? step.rows : []))
    expect([stopped, ours, plain, uncached].map((row) => row?.isFinished)).toEqual([false, true, true, true])
    expect(ours?.dollars).toBeLessThan(plain?.dollars ?? 0)
    expect(uncached?.dollars).toBeGreaterThan(3 * (plain?.dollars ?? 0))
    expect(ours?.hitRate).toBeGreaterThan(0.75)
    const text = steps.map((step) => step.text).join(' ')
    expect(text).toContain('what it reads from there costs 5% of the usual price')
    expect(text).not.toMatch(/Spent|charged|; earned back/)
    expect(text).toMatch(/Tidemark did the job for \d+ cents in the small window/)
  })

  it('fits into a terminal of 80 columns and 24 rows, screen by screen', () => {
    const screen: Screen = {
      columns: 80,
      colors: picocolors.createColors(false),
      symbols: chooseSymbols({ LANG: 'en_US.UTF-8' }),
      time: createTimeFormat('UTC'),
    }
    const screens = listScenes().map((scene) => scene.map((step) => renderTourStep(step, screen)).join(''))
    expect(screens.length).toBe(7)
    expect(Math.max(...screens.map((text) => text.trimEnd().split('\n').length))).toBeLessThanOrEqual(22)
    expect(Math.max(...screens.flatMap((text) => text.split('\n').map((line) => line.length)))).toBeLessThan(
      81,
    )
  })

  it('is told in ASCII where the terminal shows only that', () => {
    const screen: Screen = {
      columns: 80,
      colors: picocolors.createColors(false),
      symbols: chooseSymbols({ LANG: 'C' }),
      time: createTimeFormat('UTC'),
    }
    const text = steps.map((step) => renderTourStep(step, screen)).join('')
    expect(text.match(/[^\n\x20-\x7e]/g)).toBeNull()
  })

  it('leaves no temporary folder, also if it is left in the middle', async () => {
    for await (const step of playTour()) if (step.text.startsWith('2. With Tidemark')) break
    expect(readdirSync(temporary)).toEqual([])
  })

  it('stops after an interruption without leaving a folder', async () => {
    const interruption = new AbortController()
    const seen: TourStep[] = []
    const play = async (): Promise<void> => {
      for await (const step of playTour(interruption.signal)) {
        seen.push(step)
        if (step.text.startsWith('1. Without')) interruption.abort()
      }
    }
    await expect(play()).rejects.toThrow('aborted')
    expect(seen.at(-1)?.text).toMatch(/^1\. Without/)
    expect(readdirSync(temporary)).toEqual([])
  })
})

it('the session that the user tries is kept, in place of the one of an earlier tour', async () => {
  const dataHome = join(temporary, 'data')
  const listFolders = () => readdirSync(join(dataHome, 'tour'))
  const unwanted = await createKeepableTourFolder(dataHome)
  await unwanted.copyProject('with')
  unwanted.remove()
  expect([listFolders(), await findKeptTourProject(dataHome)]).toEqual([[], null])
  const first = await createKeepableTourFolder(dataHome)
  const firstRoot = await first.keep()
  const running = await createKeepableTourFolder(dataHome)
  const second = await createKeepableTourFolder(dataHome)
  const project = await second.copyProject('with')
  const root = await second.keep()
  second.remove()
  expect(await findKeptTourProject(dataHome)).toEqual({ ...project, root })
  expect([existsSync(join(project.folder, 'package.json')), existsSync(firstRoot)]).toEqual([true, false])
  expect(listFolders()).toHaveLength(2)
  running.remove()
  rmSync(dataHome, { recursive: true })
})

it('a statement about what survived is marked as false if it is not true', async () => {
  const folder = await createTourFolder()
  try {
    const project = await folder.copyProject('unsolved')
    const run = (messages: readonly object[], found: string) => ({
      session: { history: async () => ({ content: found, body: found, next: null }) } as never,
      lastRequest: () => JSON.stringify({ messages }),
      lastSummary: () => FIRST_PROMPT,
      bill: () => ({ promptSizes: [40_000] }) as never,
    })
    const marks = async (...given: Parameters<typeof run>) =>
      (await checkSurvivors(run(...given), project, 30_000)).map(({ isTrue }) => isTrue)
    await expect(marks([], '')).rejects.toThrow('CHANGES.md')
    writeFileSync(join(project.folder, 'CHANGES.md'), '# Changes\n')
    expect(await marks([], '')).toEqual([false, false, false, false, false, false])
    const kept = [{ role: 'user', content: `${FIRST_PROMPT}\n[pending] ${OPEN_TODO}` }]
    expect(await marks(kept, '1998 !== 1999')).toEqual([true, true, false, true, false, false])
    expect((await runProjectTests(project)).failed).toBe(4)
  } finally {
    folder.remove()
  }
})
