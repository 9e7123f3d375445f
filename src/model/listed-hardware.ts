/** What hardware is to the agent that the driver does not show as a device. The texts are cells of the page of the family's conditions. */
export interface ListedHardware {
  /** The hardware, and its state. */
  readonly what: string;
  /** How it is listed, and with which verdict. */
  readonly is: string;
}
