"""stub."""


class DRDH: ...
