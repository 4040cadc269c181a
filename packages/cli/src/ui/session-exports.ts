/** Exports a session to files that users share: the page as one HTML file, and the picture card. No log is ever overwritten. */
import { writeFile } from 'node:fs/promises'
import { TidemarkError } from '@tidemark/core/errors'
import { createExportedPage } from '@tidemark/page/server/html-export'
import { drawPictureCard } from '@tidemark/page/server/picture-card'
import { listContextRemovals, listRemovedBlockTexts, type NamedLog, redactStrings } from 'tidemark/internal'
import { readLog, type SessionReport } from 'tidemark/logs'

export async function writeSessionPage(
  path: string,
  report: SessionReport,
  logs: readonly NamedLog[],
  withText: boolean,
): Promise<void> {
  const log = await readLog(logs.find(({ file }) => file === report.file) ?? report.file)
  if (!log.ok) throw new TidemarkError('not-a-session', log.message)
  const page = {
    id: '0',
    report: redactStrings(report),
    isLive: false,
    undo: { target: null, why: null },
  }
  const departures = listContextRemovals(log)
  const texts = withText ? listRemovedBlockTexts(log) : null
  await writeNewFile(path, await createExportedPage({ page, departures, texts }))
}

export async function writeSessionCard(path: string, report: SessionReport): Promise<void> {
  await writeNewFile(path, drawPictureCard(report))
}

/** Writes a file, perhaps over an existing one. Its name must end with .html or .svg, so that no log is overwritten. */
async function writeNewFile(path: string, content: string): Promise<void> {
  if (!/\.(?:html?|svg)$/i.test(path))
    throw new TidemarkError(
      'bad-option',
      `${path} must end with .html or .svg, so that no log is overwritten.`,
    )
  await writeFile(path, content)
}
