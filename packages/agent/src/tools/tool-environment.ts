/** What the agent's tools need from the program that runs them. */
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { SeenFiles } from './seen-files.ts'
import type { SessionShells } from './shell-process.ts'
import type { SendWebRequest } from './web-request.ts'

export interface ToolEnvironment {
  /** The session's working directory, as an absolute path. Relative paths in tool inputs start here. */
  readonly cwd: string
  /** Folder for outputs that are too large for the conversation. It is created when first needed. */
  readonly spillFolder: string
  /** Environment variables of the commands that the model runs. */
  readonly env: NodeJS.ProcessEnv
  /** The current time in milliseconds. */
  readonly now: () => number
  /** Which files the model has seen. */
  readonly seenFiles: SeenFiles
  /** The commands that run, and the directory of the shell. */
  readonly shells: SessionShells
  /** Confines the commands of the model. If omitted, they are not confined. */
  readonly sandbox?: Sandbox
  /** Removes the key of the model from outputs that are written to files. Default: nothing is removed. */
  readonly hideKey?: (text: string) => string
  /** Asks the user. If omitted, no user can answer, and the model gets a message that says so. */
  readonly askUser?: AskUser
  /** The skills that the model can load. If omitted, there is no tool for them. */
  readonly skills?: SkillLoader
  /** Ends plan mode; returns false if it is not on. If omitted, there is no tool for plans. */
  readonly endPlanMode?: () => Promise<boolean>
  /** Called with the whole list whenever the model changes its todo list. */
  readonly onTodos?: (todos: readonly TodoItem[]) => void
  /** Sends the requests of WebFetch. Default: over the network. */
  readonly sendRequest?: SendWebRequest
  /** Returns the IP addresses of a host name. Default: the system's resolver. */
  readonly resolveHost?: (host: string) => Promise<readonly string[]>
  /** True if web pages may be fetched from this machine and its local network. Default: false. */
  readonly allowsPrivateAddresses?: boolean
  /**
   * Returns true if a command may leave the shell in this folder (a path without symbolic links), so that the next
   * command starts there. Default: the session's working directory and the folders in it.
   */
  readonly mayEnterFolder?: (folder: string) => boolean
  /**
   * Returns true if a file that a search in `root` would come upon must not be shown. Both are paths without symbolic
   * links. Default: no file is hidden.
   */
  readonly isHidden?: (tool: 'Grep' | 'Glob', file: string, root: string) => boolean
  /** By the id of a writing call: the real path for which its permission was decided. The tool refuses to write to another path. */
  readonly permittedWrites?: Map<string, string>
  /** Maximum bytes of a text file that one call of Read shows. Default: 80,000. */
  readonly readLimitBytes?: number
}

/** Asks the user all questions, one after the other. Returns one answer for each, in order. */
export type AskUser = (
  questions: readonly UserQuestion[],
  signal: AbortSignal,
) => Promise<readonly UserAnswer[]>

export interface UserQuestion {
  readonly question: string
  /** A label of a word or two, for a narrow screen. */
  readonly header?: string
  readonly options: readonly { readonly label: string; readonly description?: string }[]
  readonly multiSelect?: boolean
}

/** What the user chose or typed for one question; empty if the user skipped it. */
export type UserAnswer = readonly string[]

/** The skills that the tool Skill loads. */
export interface SkillLoader {
  /** The skills' names at the start of the session, for the definition of the tool. */
  readonly names: readonly string[]
  /** Returns the skills as they are now. */
  list(): Promise<readonly { readonly name: string; readonly description: string }[]>
  /** Returns the text of a skill. Throws if there is none of that name. */
  load(name: string, args: string, signal: AbortSignal): Promise<string>
}

export interface TodoItem {
  readonly content: string
  readonly status: 'pending' | 'in_progress' | 'completed'
  /** The item as an ongoing action, such as "Running the tests". */
  readonly activeForm?: string
}
