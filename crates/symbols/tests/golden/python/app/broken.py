def before(): ...

def broken(a, b:
    return

class After:
    def method(self): ...
