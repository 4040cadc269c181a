/** Passwords on a command line that stand behind an option of one letter: it depends on the command what that means. */
import { NO_VALUE, type SecretPattern } from './secret-pattern.ts'

/** Of the command and its option; what stands between them is of the same command. */
function behind(name: string, command: string, option: string): SecretPattern {
  const kept = `(?<kept>(?<![A-Za-z0-9_-])(?:${command})\\b[^\\r\\n|;&]{0,400}?\\s${option}`
  const quoted = `(?<quote>["'])(?=[^\\r\\n]*?\\k<quote>))${NO_VALUE}(?:(?!\\k<quote>)[^\\r\\n])+`
  return { name, pattern: new RegExp(`${kept}${quoted}`, 'g') }
}

function behindPlain(name: string, command: string, option: string): SecretPattern {
  const kept = `(?<kept>(?<![A-Za-z0-9_-])(?:${command})\\b[^\\r\\n|;&]{0,400}?\\s${option})`
  return { name, pattern: new RegExp(`${kept}(?!["'-])${NO_VALUE}[^\\s"']{3,}`, 'g') }
}

const OPTIONS: readonly (readonly [command: string, option: string])[] = [
  // Only glued on: with room between, `-p` asks, and what follows is the name of a database.
  ['mysql(?:dump|admin|import|show|check|sh|pump|slap)?|mariadb(?:-[a-z]+)?', '-p'],
  ['sshpass', '-p[ \\t]*'],
  ['(?:docker|podman|nerdctl|buildah|helm registry|oras|az acr) login', '-p[ \\t=]*'],
  ['(?:mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport)', '-p[ \\t]*'],
  ['redis-cli', '-a[ \\t]*'],
  ['curl', '(?:-u|--user)[ =]?[^\\s:"\\\']+:'],
  ['openssl', '-pass(?:in|out)?[ \\t]+pass:'],
  ['7z[az]?', '-p'],
]

export const COMMAND_SECRETS: readonly SecretPattern[] = [
  ...OPTIONS.flatMap(([command, option]) => [
    behind(`quoted, of ${command}`, command, option),
    behindPlain(`of ${command}`, command, option),
  ]),
  // As one quoted word.
  {
    name: 'user and password',
    pattern:
      /(?<kept>(?<![A-Za-z0-9])curl\b[^\r\n|;]*?\s(?:-u|--user)[ =]?["'][^\s:"']+:)(?!\[redacted\])[^\s"'[$]{3,}/g,
  },
]
