/** Puts the tables of a bench into docs/drop-in.md. */
import { readFile, writeFile } from 'node:fs/promises'

const PAGE = new URL('../../docs/drop-in.md', import.meta.url)

/** Replaces what stands between the two comments of `name` on the page. */
export async function writeTables(name: string, tables: string): Promise<void> {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`]
  const page = await readFile(PAGE, 'utf8')
  const [before, after] = [page.split(begin)[0], page.split(end)[1]]
  if (before === undefined || after === undefined) throw new Error(`docs/drop-in.md has no ${begin} … ${end}`)
  await writeFile(PAGE, `${before}${begin}\n${tables}\n${end}${after}`)
}
