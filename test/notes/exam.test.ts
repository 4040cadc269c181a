import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { computeScore, countItems, type ExamPoint, examineLog, isPassed } from './exam.ts'
import { findCallLines } from './exam-log.ts'
import { examine, QUESTIONS } from './examiner.ts'
import { writeSyntheticRollout, writeSyntheticSession } from './synthetic-session.ts'

const SEEDS = [1, 2, 3, 4, 5]

function listFaults(points: readonly ExamPoint[]): readonly string[] {
  return points.flatMap(({ calls, report }) =>
    QUESTIONS.flatMap((question) =>
      (['missing', 'contradicted'] as const).flatMap((judgement) =>
        report[question][judgement].map((item) => `call ${calls}, ${question} ${judgement}: ${item}`),
      ),
    ),
  )
}

describe('the local notes of a session', () => {
  it.each(SEEDS)('are true at every 50th call, by the rules of the exam (seed %i)', async (seed) => {
    const points = await examineLog(writeSyntheticSession(seed, 150))
    expect(points.length).toBeGreaterThanOrEqual(3)
    expect(isPassed(points), listFaults(points).join('\n')).toBe(true)
    expect(countItems(points, 'contradicted')).toBe(0)
    expect(computeScore(points)).toBeGreaterThanOrEqual(0.95)
  })

  it.each(SEEDS)('of Codex are true too (seed %i)', async (seed) => {
    const points = await examineLog(writeSyntheticRollout(seed, 100))
    expect(points.length).toBeGreaterThanOrEqual(2)
    expect(isPassed(points), listFaults(points).join('\n')).toBe(true)
    for (const question of ['todos', 'files', 'commands', 'instruction'] as const)
      expect([question, countItems(points, 'right', [question]) > 0]).toEqual([question, true])
  })

  it('of the sample session of Tidemark are true at every fourth call', async () => {
    const sample = new URL('../../packages/cli/sample/login-bug.jsonl', import.meta.url)
    const points = await examineLog((await readFile(sample, 'utf8')).split('\n'), 4)
    expect(points.map(({ calls }) => calls)).toEqual([4, 8, 12])
    expect(isPassed(points), listFaults(points).join('\n')).toBe(true)
    expect(countItems(points, 'right')).toBeGreaterThan(10)
  })

  it('are asked all six questions', async () => {
    const points = (
      await Promise.all(SEEDS.map((seed) => examineLog(writeSyntheticSession(seed, 150))))
    ).flat()
    for (const question of QUESTIONS)
      expect([question, countItems(points, 'right', [question]) > 0]).toEqual([question, true])
  })

  it('do not pass where nothing was asked, and a folder without usable logs fails the exam', async () => {
    expect(isPassed([])).toBe(false)
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-exam-'))
    await writeFile(join(folder, 'short.jsonl'), '{"type":"assistant"}\n')
    const script = fileURLToPath(new URL('../../scripts/exam.ts', import.meta.url))
    const end = spawnSync(process.execPath, ['--conditions=tidemark-source', script, folder], {
      encoding: 'utf8',
    })
    await rm(folder, { recursive: true })
    expect([end.status, end.stderr]).toEqual([1, expect.stringContaining('No log could be examined')])
  })

  it('do not pass if they are larger than the policy allows', async () => {
    const [point] = await examineLog(writeSyntheticSession(1, 50))
    if (point === undefined) throw new Error('the session has fewer than 50 calls')
    const passes = (tokens: number): boolean => isPassed([{ ...point, tokens }])
    expect([passes(15_500), passes(15_501)]).toEqual([true, false])
  })

  it('do not pass if they are those of an earlier point', async () => {
    const lines = writeSyntheticSession(1, 150)
    const [first] = await examineLog(lines)
    const position = findCallLines(lines)[149] ?? 0
    const report = examine(lines.slice(0, position + 1), first?.notes ?? '')
    const stale = [{ calls: 150, report, notes: '', tokens: 0 }]
    expect(isPassed(stale)).toBe(false)
    expect(countItems(stale, 'contradicted')).toBeGreaterThan(0)
  })
})
