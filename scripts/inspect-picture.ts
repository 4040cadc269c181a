/** Draws docs/images/inspect.svg: what `tidemark inspect` prints for a made-up session, on 100 columns. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { main } from '@tidemark/cli'
import { screenToSvg } from './picture/screen-to-svg.ts'
import { toldLines } from './picture/told-lines.ts'

const COLUMNS = 100
const TITLE = 'The page of tidemark inspect for one session'
const folder = mkdtempSync(join(tmpdir(), 'tidemark-picture-'))
const log = join(folder, 'login.jsonl')
writeFileSync(
  log,
  toldLines()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join(''),
)

let output = ''
const code = await main(['inspect', log], {
  write: (text) => {
    output += text
  },
  warn: (text) => process.stderr.write(text),
  env: { TZ: 'UTC', FORCE_COLOR: '1', LANG: 'C.UTF-8' },
  isTty: true,
  columns: COLUMNS,
})
rmSync(folder, { recursive: true })
if (code === 0)
  writeFileSync(new URL('../docs/images/inspect.svg', import.meta.url), screenToSvg(output, COLUMNS, TITLE))
process.exitCode = code
