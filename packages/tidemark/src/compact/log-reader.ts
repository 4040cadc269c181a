/** Reads files out of a log instead of from the disk: as the session last had them, and marked so. */
import type { FileRead, FileReader } from '@tidemark/core'
import { type LogText, placeOf } from './log-texts.ts'

export function createLogReader(texts: ReadonlyMap<string, LogText>, folder: string | null): FileReader {
  return {
    read: async (path, limitBytes) => {
      const place = placeOf(path, folder)
      return readFrom(texts.get(place), place, limitBytes)
    },
  }
}

/** The disk where the file is there, else the log. */
export function createEitherReader(disk: FileReader, log: FileReader): FileReader {
  return {
    async read(path, limitBytes) {
      const onDisk = await disk.read(path, limitBytes)
      if (onDisk.ok) return onDisk
      const inLog = await log.read(path, limitBytes)
      return inLog.ok ? inLog : onDisk
    },
  }
}

function readFrom(known: LogText | undefined, path: string, limitBytes: number): FileRead {
  if (known === undefined) return { ok: false, why: 'the log does not have its text' }
  const whole = `${noteOn(known)}\n${known.text}`
  const bytes = Buffer.byteLength(whole)
  // No character takes more than three bytes for each of its units.
  const isWhole = bytes <= limitBytes
  const text = isWhole ? whole : whole.slice(0, Math.floor(limitBytes / 3))
  return { ok: true, text, bytes, isWhole, realPath: path }
}

function noteOn({ text, isWhole, from }: LogText): string {
  const last = from + text.replace(/\n$/, '').split('\n').length - 1
  const which = isWhole ? 'as' : `lines ${from} to ${last}, as`
  return `[${which} the log of the session last had it; the file itself was not read again]`
}
