/** Draws docs/images/ui-card.svg: the picture card of the made-up session, as `tidemark inspect --card` writes it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { main } from '@tidemark/cli'
import { toldLines } from './picture/told-lines.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-picture-'))
const log = join(folder, 'login.jsonl')
writeFileSync(
  log,
  toldLines()
    .map((line) => `${JSON.stringify(line)}\n`)
    .join(''),
)
const card = fileURLToPath(new URL('../docs/images/ui-card.svg', import.meta.url))
process.exitCode = await main(['inspect', log, '--card', card], {
  write: () => {},
  warn: (text) => process.stderr.write(text),
  env: { TZ: 'UTC', LANG: 'C.UTF-8' },
  isTty: false,
  columns: 100,
})
rmSync(folder, { recursive: true })
