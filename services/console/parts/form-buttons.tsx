type FormButtonsProps = { submit: string; look?: 'main' | 'danger'; isOff?: boolean; back?: string; onBack(): void }

/** The two buttons of a form: its action, and back. */
export const FormButtons = ({ submit, look = 'main', isOff = false, back = 'Back', onBack }: FormButtonsProps) => (
  <div class="row">
    <button type="submit" class={`button ${look}`} disabled={isOff}>
      {submit}
    </button>
    <button type="button" class="button plain" onClick={onBack}>
      {back}
    </button>
  </div>
)
