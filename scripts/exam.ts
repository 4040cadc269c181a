/**
 * The open-book exam of the local notes (docs/notes-exam.md) on every log below a folder:
 * `npm run exam -- FOLDER [--show]`. Exit code 1 if a log does not pass, or none could be examined.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { computeScore, countItems, type ExamPoint, examineLog, isPassed } from '../test/notes/exam.ts'
import { QUESTIONS } from '../test/notes/examiner.ts'
import { table } from './table.ts'
import { runScript, WrongUse } from './wrong-use.ts'

const HEADS = ['session', 'points', ...QUESTIONS, 'score', 'contradicted', 'undecided', 'tokens', 'passed']

await runScript('exam', async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { show: { type: 'boolean' } },
  })
  const [folder] = positionals
  if (folder === undefined || positionals.length > 1 || !existsSync(folder))
    throw new WrongUse('give the folder (or file) that holds the recorded sessions, and --show if you like')
  const rows: (readonly string[])[] = []
  const leftOut: string[] = []
  let isAllPassed = true
  for (const path of listLogs(folder)) {
    const lines = readLines(path)
    const reason = whyLeftOut(lines)
    const points = reason === null ? await examineLog(lines) : []
    if (points.length === 0) {
      leftOut.push(`${nameLog(path)}: ${reason ?? 'fewer than 50 tool calls'}`)
      continue
    }
    rows.push(toRow(nameLog(path), points))
    if (values.show === true) for (const point of points) showFaults(nameLog(path), point)
    isAllPassed &&= isPassed(points)
  }
  console.log(table(HEADS, rows))
  console.log('\nEach cell: right/missing/contradicted, and undecided after a question mark.')
  if (leftOut.length > 0) console.log(`\nLeft out:\n${leftOut.map((line) => `  ${line}`).join('\n')}`)
  if (rows.length === 0) console.error('\nNo log could be examined.')
  return isAllPassed && rows.length > 0 ? 0 : 1
})

function toRow(name: string, points: readonly ExamPoint[]): readonly string[] {
  const cells = QUESTIONS.map((question) => {
    const count = (judgement: 'right' | 'missing' | 'contradicted' | 'undecided') =>
      countItems(points, judgement, [question])
    const open = count('undecided')
    return `${count('right')}/${count('missing')}/${count('contradicted')}${open > 0 ? `?${open}` : ''}`
  })
  const score = computeScore(points)
  return [
    name,
    String(points.length),
    ...cells,
    score === null ? 'none' : `${(100 * score).toFixed(1)}%`,
    String(countItems(points, 'contradicted')),
    String(countItems(points, 'undecided')),
    String(Math.max(...points.map(({ tokens }) => tokens))),
    isPassed(points) ? 'yes' : 'no',
  ]
}

function showFaults(name: string, { calls, report }: ExamPoint): void {
  for (const question of QUESTIONS)
    for (const judgement of ['missing', 'contradicted'] as const)
      for (const item of report[question][judgement])
        console.log(`${name} call ${calls} ${question} ${judgement}: ${JSON.stringify(item.slice(0, 300))}`)
}

function listLogs(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path]
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => /\.jsonl(?:\.gz)?$/.test(file))
    .toSorted()
    .map((file) => join(path, file))
}

function readLines(path: string): readonly string[] {
  const bytes = readFileSync(path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n')
}

/** The truth rules know the tools and records of Claude Code, Codex and Tidemark only. */
function whyLeftOut(lines: readonly string[]): string | null {
  const isKnown = lines.some((line) => /"type":\s*"(?:assistant|response_item)"/.test(line))
  return isKnown ? null : 'not a log of Claude Code, Codex or Tidemark'
}

function nameLog(path: string): string {
  return basename(path).replace(/\.jsonl(?:\.gz)?$/, '')
}
