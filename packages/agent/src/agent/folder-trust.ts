/**
 * Stores which parts of a project's settings the user has trusted. Trust is for one folder, by its real path, and for the content of each
 * part: a new or changed part is not trusted. Stored in the Tidemark home, one file per folder.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { escapeForApproval } from '@tidemark/terminal/render/text'
import { writeFileAtomic } from 'tidemark/tools'
import { isObject } from '../json-value.ts'

/** A part of a project's settings that counts only if the user trusts it, such as one hook or one allow rule. */
export interface TrustItem {
  /** The setting, such as `hooks` or `permissions.allow`. */
  readonly setting: string
  /** Everything about the part that matters for trust: what runs, and when. */
  readonly parts: readonly string[]
  /** Files of the project that the part runs, with the hash of their content. */
  readonly files?: readonly { readonly path: string; readonly hash: string }[]
}

interface FolderTrust {
  /** True if the user has trusted the folder as a whole, whatever it contained then. */
  readonly isTrusted: boolean
  /** Returns true if the user has trusted exactly this. */
  covers(item: TrustItem): boolean
  /** Returns true if the user trusted a part with this name before, such as the same hook or server, even with other content. */
  coveredBefore(item: TrustItem): boolean
}

const FORMAT = 'tidemark-trust'

/** Returns the folder that stores trust. Tools must not write there: what is stored decides what runs. */
function findTrustFolder(home: string): string {
  return join(home, 'trust')
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function hashItem({ setting, parts, files = [] }: TrustItem): string {
  return hashText(JSON.stringify([setting, parts, files.map(({ path, hash }) => [path, hash])]))
}

/** Settings whose first part is a name. The rest of such a part may change under the same name. */
const NAMED_SETTINGS = ['agents', 'mcpServers']

/** Hashes the part of an item that does not change with its content. */
function hashName({ setting, parts }: TrustItem): string {
  return hashText(JSON.stringify([setting, NAMED_SETTINGS.includes(setting) ? parts[0] : parts]))
}

/** Returns the path without links and `..`, in the spelling of the disk. A folder that is gone keeps its name. */
async function findRealFolder(folder: string): Promise<string> {
  return await realpath(folder).catch(() => resolve(folder))
}

function findTrustFile(home: string, realFolder: string): string {
  return join(findTrustFolder(home), `${hashText(realFolder)}.json`)
}

/** Reads what the user has trusted in a folder. A file that cannot be read trusts nothing. */
export async function readFolderTrust(home: string, folder: string): Promise<FolderTrust> {
  const real = await findRealFolder(folder)
  const stored = await readTrustFile(findTrustFile(home, real))
  const isHere = stored?.folder === real
  const items = new Set(isHere ? stored.items : [])
  const names = new Set(isHere ? stored.names : [])
  return {
    isTrusted: isHere && !stored.isPartial,
    covers: (item) => items.has(hashItem(item)),
    coveredBefore: (item) => names.has(hashName(item)),
  }
}

interface TrustFile {
  readonly folder: string
  readonly items: readonly unknown[]
  readonly names: readonly unknown[]
  /** True if only single items are trusted, not the folder as a whole. */
  readonly isPartial: boolean
}

async function readTrustFile(path: string): Promise<TrustFile | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!isObject(value) || value.format !== FORMAT || value.version !== 1) return null
    const { folder, items, names = [] } = value
    if (typeof folder !== 'string' || !Array.isArray(items)) return null
    return { folder, items, names: Array.isArray(names) ? names : [], isPartial: value.isPartial === true }
  } catch {
    return null
  }
}

/** Trusts a folder as a whole, with exactly these items and none of those before. Returns the folder's real path. */
export async function replaceTrust(
  home: string,
  folder: string,
  items: readonly TrustItem[],
): Promise<string> {
  const real = await findRealFolder(folder)
  await replaceTrustFile(home, real, { items: items.map(hashItem), names: items.map(hashName) })
  return real
}

/** Trusts further items in a folder. Does not make the folder trusted as a whole. */
export async function addTrust(home: string, folder: string, items: readonly TrustItem[]): Promise<void> {
  const real = await findRealFolder(folder)
  const stored = await readTrustFile(findTrustFile(home, real))
  const known = stored?.folder === real ? stored : { items: [], names: [], isPartial: true }
  await replaceTrustFile(home, real, {
    items: [...new Set([...known.items, ...items.map(hashItem)])],
    names: [...new Set([...known.names, ...items.map(hashName)])],
    ...(known.isPartial ? { isPartial: true } : {}),
  })
}

async function replaceTrustFile(
  home: string,
  real: string,
  facts: Partial<Omit<TrustFile, 'folder'>>,
): Promise<void> {
  const value = { format: FORMAT, version: 1, folder: real, ...facts }
  await writeFileAtomic(findTrustFile(home, real), `${JSON.stringify(value)}\n`)
}

/** Withdraws all trust in a folder. Returns false if there was none. */
export async function withdrawTrust(home: string, folder: string): Promise<boolean> {
  const path = findTrustFile(home, await findRealFolder(folder))
  const hadTrust = (await readTrustFile(path)) !== null
  await rm(path, { force: true })
  return hadTrust
}

/** Lists the folders in which the user has trusted something, sorted. */
export async function listTrustedFolders(home: string): Promise<readonly string[]> {
  const names = await readdir(findTrustFolder(home)).catch(() => [])
  const files = await Promise.all(
    names
      .filter((name) => name.endsWith('.json'))
      .map((name) => readTrustFile(join(findTrustFolder(home), name))),
  )
  return files.flatMap((file) => file?.folder ?? []).sort()
}

/** Formats an item for the user who must decide about it: completely, and with hidden characters made visible. */
export function formatTrustItem({ setting, parts, files = [] }: TrustItem): string {
  const names =
    files.length === 0 ? '' : ` [runs ${files.map(({ path }) => escapeForApproval(path)).join(', ')}]`
  return `${setting}: ${parts.map(escapeForApproval).join(' ')}${names}`
}
