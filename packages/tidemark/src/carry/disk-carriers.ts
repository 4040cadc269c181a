/** Carriers whose source of truth lies on the disk: files in use, the plan, standing instructions. Read anew each time. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import {
  type Carrier,
  type FilesOptions,
  filesCarrier,
  planCarrier,
  type StandingText,
  standingCarrier,
} from '@tidemark/core'
import { errorCode } from '../files/file-port.ts'
import { createDiskReader } from './disk-reader.ts'

export interface DiskCarriersOptions extends Pick<FilesOptions, 'recent' | 'isStub'> {
  /** What relative paths start from; the process's own folder unless given. */
  readonly folder?: string
  /** The plan file, as it is named at the time; null where there is none. */
  readonly planFile?: () => string | null
  /** Memory files in force, in order. One that is not there is left out. */
  readonly standing?: () => readonly string[]
  /** The session's own log, which is never brought back. */
  readonly transcript?: string
  /** More files that are never brought back. */
  readonly never?: () => readonly string[]
}

/** The files touched last, the plan and the standing instructions. */
export function diskCarriers(options: DiskCarriersOptions = {}): readonly Carrier[] {
  const {
    folder = process.cwd(),
    planFile = () => null,
    standing,
    transcript,
    never,
    recent,
    isStub,
  } = options
  const apart = (): readonly string[] => [
    ...(transcript === undefined ? [] : [transcript]),
    ...[planFile() ?? []].flat(),
    ...(standing?.() ?? []),
    ...(never?.() ?? []),
  ]
  return [
    standingCarrier(async () => presentTexts(folder, standing?.() ?? [])),
    filesCarrier({
      ...{ reader: createDiskReader(folder), folder, never: apart },
      ...(recent === undefined ? {} : { recent }),
      ...(isStub === undefined ? {} : { isStub }),
    }),
    planCarrier(async () => {
      const path = planFile()
      return path === null ? null : presentText(folder, path)
    }),
  ]
}

async function presentTexts(folder: string, paths: readonly string[]): Promise<readonly StandingText[]> {
  const texts = await Promise.all(paths.map((path) => presentText(folder, path)))
  return texts.filter((text) => text !== null)
}

/** Null where there is no such file, or nothing in it. Any other fault is the carrier's to report. */
async function presentText(folder: string, path: string): Promise<StandingText | null> {
  try {
    const text = await readFile(resolve(folder, path), 'utf8')
    return text.trim() === '' ? null : { path, text }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}
