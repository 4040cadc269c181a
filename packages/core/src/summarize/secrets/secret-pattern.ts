/** What a credential looks like. A pattern that would also take ordinary code, hashes or ids is left out. */
export interface SecretPattern {
  readonly name: string
  /** Global. Group `kept`, where there is one, stands before the secret and stays. */
  readonly pattern: RegExp
}

/** What is plainly no secret where one might stand: a reference, a placeholder, a word of a language. */
export const NO_VALUE: string =
  '(?!\\[redacted\\]|[$<{(*[]|(?:process|os|env|self|this|config|settings|options)\\.|(?:null|none|nil|true|false|undefined|string|str|bytes|number|int|bool|boolean|any|unknown|optional|required|x{3,}|\\.{3}|…|your[_-]|my[_-]|example|changeme|placeholder|redacted)(?![A-Za-z0-9]))'
