/**
 * Finds programs that a repository makes Git run: hooks, and configuration such as `core.fsmonitor` and `filter.x.clean`. They may come
 * with a copied or unpacked folder and run even at `git status`, so the user must trust them, by their content.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isFile, isPathWithin, toShownPath } from '../tools/tool-access.ts'
import type { TrustItem } from './folder-trust.ts'
import {
  findRepository,
  type GitConfigEntry,
  isGitFolder,
  listGitConfigPaths,
  listGitFolders,
  listSubmodulePaths,
  readGitConfigFiles,
  readTextIfAny,
} from './git-config.ts'
import { visitNearbyEntries } from './protected-paths.ts'

/**
 * Keys that name no program, by section: keys of Git, and sections of other tools that Git ignores. Any other key counts as a program,
 * because new versions of Git add keys.
 */
const HARMLESS_KEYS: ReadonlyMap<string, ReadonlySet<string> | 'all'> = new Map(
  Object.entries({
    ...Object.fromEntries(
      'user author committer color advice status log pull push fetch rebase rerere pack index feature maintenance extensions commit tag column blame checkout clean grep i18n notes transfer versionsort worktree apply am add format splitindex stash showbranch commitgraph fsck gui gitflow vscode github gitlab hub'
        .split(' ')
        .map((section) => [section, 'all' as const]),
    ),
    ...Object.fromEntries(
      Object.entries({
        core: 'repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf hidedotfiles longpaths untrackedcache preloadindex quotepath abbrev sparsecheckout sparsecheckoutcone sharedrepository commentchar commentstring compression loosecompression bigfilethreshold packedgitlimit packedgitwindowsize deltabasecachelimit fscache protecthfs protectntfs checkstat trustctime whitespace excludesfile multipackindex commitgraph fsync fsyncmethod fsyncobjectfiles checkroundtripencoding notesref warnambiguousrefs maxtreedepth',
        remote:
          'url pushurl fetch push tagopt mirror prune prunetags promisor partialclonefilter skipdefaultupdate skipfetchall followremotehead gh-resolved projectnumber proxy proxyauthmethod serveroption',
        diff: 'algorithm renames renamelimit mnemonicprefix noprefix colormoved colormovedws context interhunkcontext ignoresubmodules indentheuristic submodule suppressblankempty wordregex autorefreshindex dirstat statgraphwidth statnamewidth orderfile relative wserrorhighlight xfuncname funcname binary cachetextconv',
        merge:
          'conflictstyle ff renames renamelimit verifysignatures autostash log stat branchdesc defaulttoupstream directoryrenames name recursive',
        submodule: 'url active path branch fetchrecursesubmodules ignore recurse propagatebranches shallow',
        credential: 'username usehttppath',
        gpg: 'format',
        init: 'defaultbranch',
        gc: 'auto autopacklimit autodetach pruneexpire worktreepruneexpire reflogexpire reflogexpireunreachable packrefs writecommitgraph',
        // `http.cookieFile` is not listed: Git would write a server's cookies to that file.
        http: 'proxy sslverify sslcainfo sslbackend extraheader postbuffer lowspeedlimit lowspeedtime version useragent followredirects emptyauth',
        lfs: 'url pushurl repositoryformatversion access locksverify fetchinclude fetchexclude allowincompletepush skipdownloaderrors',
        url: 'insteadof pushinsteadof',
        include: 'path',
        includeif: 'path',
      }).map(([section, keys]) => [section, new Set(keys.split(' '))]),
    ),
  }),
)

/** Keys that are harmless with these values. */
const HARMLESS_VALUES: readonly { readonly key: RegExp; readonly value: RegExp }[] = [
  { key: /^core\.fsmonitor$/, value: /^(?:true|false|yes|no|on|off|1|0)$/i },
  { key: /^pager\./, value: /^(?:true|false|yes|no|on|off|1|0)$/i },
  { key: /^branch\.(?!.*\.mergeoptions$)/, value: /^(?!\w+::)/ },
  { key: /^submodule\..*\.update$/, value: /^(?:checkout|rebase|merge|none)$/ },
  { key: /^credential\..*helper$|^credential\.helper$/, value: /^[a-z]*(?:-[a-z]+)*$/ },
  {
    key: /^filter\.lfs\.(?:clean|smudge|process|required)$/,
    value: /^(?:git-lfs (?:clean|smudge) -- %f|git-lfs filter-process|true)$/,
  },
]

function isHarmless({ key, section, name, value }: GitConfigEntry, place: GitPlace): boolean {
  if (HARMLESS_VALUES.some((each) => each.key.test(key) && each.value.test(value))) return true
  // A submodule has its work tree inside the project. Any other work tree would let a checkout write to unexpected places.
  if (key === 'core.worktree') return isPathWithin(resolve(place.gitFolder, value), place.root)
  // An address such as `ext::sh -c …` runs its words as a command.
  if ((section === 'remote' && /^\w+::/.test(value)) || (section === 'url' && /^url\.\w+::/.test(key)))
    return false
  const known = HARMLESS_KEYS.get(section)
  return known === 'all' || known?.has(name) === true
}

interface GitPlace {
  readonly gitFolder: string
  /** The folder of the project. Paths are shown relative to it, and work trees must be in it. */
  readonly root: string
}

/**
 * Lists the programs that repositories around and inside a folder make Git run, as items for trust. Reads the disk at each call.
 */
export function listGitTrustItems(folder: string): readonly TrustItem[] {
  const root = findRepository(folder) ?? folder
  return listRepositories(folder, root).flatMap((gitFolder) => listOwnPrograms({ gitFolder, root }))
}

/** Returns the Git folders of the repository around a folder, of its work trees and submodules, and of repositories inside. */
function listRepositories(folder: string, root: string): readonly string[] {
  const found = new Set<string>()
  const add = (at: string): void => {
    const path = existsSync(join(at, '.git')) ? join(at, '.git') : at
    if (path === at && !isGitFolder(at)) return
    for (const each of listGitFolders(path)) {
      if (found.has(each)) continue
      found.add(each)
      for (const link of listSubmodulePaths(each)) add(resolve(at, link))
    }
  }
  add(root)
  visitNearbyEntries(folder, (name, at) => {
    if (name === '.git' || name === 'HEAD') add(at)
    return name !== '.git' && name !== 'node_modules'
  })
  for (const each of [...found])
    visitNearbyEntries(join(each, 'modules'), (name, at) => {
      if (name === 'config') for (const path of listGitFolders(at)) found.add(path)
      return !/^(?:objects|refs|logs|hooks)$/.test(name)
    })
  return [...found]
}

function listOwnPrograms(place: GitPlace): readonly TrustItem[] {
  const { gitFolder, root } = place
  const items: TrustItem[] = []
  const hooks = new Set([join(gitFolder, 'hooks')])
  // Configuration in the home folder is the user's own, so it is not followed.
  for (const { file, entries } of readGitConfigFiles(listGitConfigPaths(gitFolder), null)) {
    if (entries === null) return [createUntrustable(toShownPath(file, root))]
    for (const entry of entries)
      if (entry.key === 'core.hookspath') hooks.add(resolve(findWorkTree(place), entry.value))
      else if (!isHarmless(entry, place)) items.push(toItem(entry, place))
  }
  return [...items, ...[...hooks].flatMap((each) => listHooks(each, root)), ...listPendingCommands(place)]
}

/** Returns an item for the commands that an unfinished rebase will still run; none without such commands. */
function listPendingCommands({ gitFolder, root }: GitPlace): readonly TrustItem[] {
  const todo = join(gitFolder, 'rebase-merge', 'git-rebase-todo')
  const hasCommands = /^\s*(?:x|exec)\s/m.test(readTextIfAny(todo) ?? '')
  return hasCommands ? [withFiles({ setting: 'git', parts: ['rebase'] }, [todo], root)] : []
}

function findWorkTree({ gitFolder, root }: GitPlace): string {
  return basename(gitFolder) === '.git' ? dirname(gitFolder) : root
}

/** Returns an item with a different hash each time, so that it is never trusted. Used for content that cannot be read. */
function createUntrustable(what: string): TrustItem {
  return { setting: 'git', parts: [what, 'cannot be read', randomUUID()] }
}

/** A longer value is not searched for names of files. */
const MOST_VALUE_CHARACTERS = 2_000

function toItem({ key, value }: GitConfigEntry, place: GitPlace): TrustItem {
  const { root } = place
  const words = value.length > MOST_VALUE_CHARACTERS ? [] : value.split(/[\s!;&|()'"]+/)
  const named = words.flatMap((word) => {
    const path = resolve(findWorkTree(place), word)
    return word !== '' && isPathWithin(path, root) && isFile(path) ? [path] : []
  })
  return withFiles({ setting: 'git', parts: [key, value] }, named, root)
}

/** Matches names of hooks: all but `update` have a dash. */
const HOOK_NAME = /^(?:update|[a-z0-9]+(?:-[a-z0-9]+)+)$/
const MOST_HOOKS = 200

/** Returns an item for each hook. With husky, the scripts that run are beside the configured hooks folder. */
function listHooks(folder: string, root: string): readonly TrustItem[] {
  const folders = basename(folder) === '_' ? [folder, dirname(folder)] : [folder]
  const paths = folders.flatMap((each) =>
    listNames(each)
      .filter((name) => HOOK_NAME.test(name))
      .map((name) => join(each, name)),
  )
  if (paths.length > MOST_HOOKS) return [createUntrustable(toShownPath(folder, root))]
  return paths.filter(isFile).map((path) => withFiles({ setting: 'git', parts: ['hook'] }, [path], root))
}

function withFiles(item: TrustItem, paths: readonly string[], root: string): TrustItem {
  if (paths.length === 0) return item
  return { ...item, files: paths.map((path) => ({ path: toShownPath(path, root), hash: hashFile(path) })) }
}

const MOST_FILE_BYTES = 10_000_000

/** Returns the hash of a file; for an unreadable file, a different value each time. */
function hashFile(path: string): string {
  try {
    if (statSync(path).size > MOST_FILE_BYTES) return randomUUID()
    return createHash('sha256').update(readFileSync(path)).digest('hex')
  } catch {
    return randomUUID()
  }
}

function listNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
