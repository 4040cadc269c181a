/** One sentence in place of content that is being loaded, could not be loaded, or does not exist. */
export function Notice({ text, isError = false }: { readonly text: string; readonly isError?: boolean }) {
  return (
    <p class={isError ? 'notice bad' : 'notice'} role={isError ? 'alert' : 'status'}>
      {text}
    </p>
  )
}
