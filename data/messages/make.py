"""Makes messages.csv: made-up messages of customers to a shop, in English, German, Spanish and Japanese.

    python data/messages/make.py

No message was written by a customer, and none was copied: sentences come from the lists below. The same script gives the same
bytes (only `random()` of Python's generator is used, whose numbers do not change between versions).
What makes it a little hard: typing errors, everything in small or in capital letters, messages that name two topics and mean one,
and a few that could be about anything.
"""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

ROWS = {"en": 420, "de": 190, "es": 160, "ja": 130}
TOPICS = ("account", "billing", "delivery", "praise", "returns", "technical")

WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "thing": (
            "kettle",
            "lamp",
            "rain jacket",
            "bookshelf",
            "headphones",
            "desk chair",
            "coffee grinder",
            "backpack",
            "blender",
            "rug",
            "tent",
            "monitor",
        ),
        "day": ("Monday", "Tuesday", "last Friday", "the weekend", "yesterday", "the 3rd of May", "two weeks ago", "10/06"),
        "sum": ("$19.90", "£45", "€120.00", "30 dollars", "12,50 €", "$7", "£249.99"),
        "order": ("order 48213", "order #7731", "my order no. 10045", "order A-552", "my last order"),
        "device": ("my phone", "an iPad", "Windows 11", "Firefox", "my Android tablet", "the website", "the app"),
        "wait": ("three days", "a week", "10 days", "almost a month", "48 hours"),
    },
    "de": {
        "thing": ("Wasserkocher", "Lampe", "Regenjacke", "Kopfhörer", "Bürostuhl", "Kaffeemühle", "Rucksack", "Mixer", "Teppich", "Zelt"),
        "day": ("Montag", "Dienstag", "letzten Freitag", "gestern", "dem 3. Mai", "vor zwei Wochen"),
        "sum": ("19,90 €", "45 Euro", "120,00 EUR", "30 €", "249,99 €"),
        "order": ("Bestellung 48213", "Bestellung Nr. 7731", "meine letzte Bestellung", "Auftrag A-552"),
        "device": ("meinem Handy", "dem iPad", "Windows 11", "Firefox", "der Webseite", "der App"),
        "wait": ("drei Tagen", "einer Woche", "zehn Tagen", "fast einem Monat"),
    },
    "es": {
        "thing": ("hervidor", "lámpara", "chaqueta", "auriculares", "silla", "molinillo de café", "mochila", "batidora", "alfombra"),
        "day": ("el lunes", "el martes", "el viernes pasado", "ayer", "el 3 de mayo", "hace dos semanas"),
        "sum": ("19,90 €", "45 euros", "120,00 EUR", "30 €", "249,99 €"),
        "order": ("pedido 48213", "pedido n.º 7731", "mi último pedido", "pedido A-552"),
        "device": ("mi móvil", "el iPad", "Windows 11", "Firefox", "la página web", "la aplicación"),
        "wait": ("tres días", "una semana", "diez días", "casi un mes"),
    },
    "ja": {
        "thing": ("電気ケトル", "ランプ", "レインジャケット", "本棚", "ヘッドホン", "椅子", "コーヒーミル", "リュック", "ミキサー"),
        "day": ("月曜日", "先週の金曜日", "昨日", "5月3日", "二週間前"),
        "sum": ("1,990円", "4500円", "12,000円", "980円"),
        "order": ("注文48213", "注文番号7731", "先日の注文", "注文A-552"),
        "device": ("スマホ", "iPad", "Windows 11", "ウェブサイト", "アプリ"),
        "wait": ("三日", "一週間", "10日", "一か月近く"),
    },
}

CORES: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "billing": (
            "I was charged twice for {order}",
            "why is there a charge of {sum} on my card?",
            "the invoice for {order} shows the wrong VAT number",
            "you took {sum} instead of what the shop said",
            "please send me a receipt for the {thing}",
            "my credit card was declined although there is money on it",
            "the voucher was not deducted, I still paid {sum}",
            "can I pay by bank transfer or in instalments?",
            "the subscription fee went up to {sum} and nobody told me",
            "I need a copy of the bill from {day} for my accountant",
            "I got a payment reminder for {order} which I paid on {day}",
            "the total of {order} does not add up",
        ),
        "delivery": (
            "where is {order}? I have been waiting for {wait}",
            "the tracking has not moved since {day}",
            "the parcel with the {thing} never arrived",
            "the courier left the {thing} in the rain",
            "can you deliver on {day} instead?",
            "tracking says delivered but there is nothing at my door",
            "the driver went to the wrong address",
            "how long does shipping to Norway take?",
            "half of {order} is still missing from the box",
            "please send it to my office, nobody is home on {day}",
            "{order} has been stuck at customs for {wait}",
            "the package came without the {thing}",
        ),
        "returns": (
            "how do I send the {thing} back?",
            "I want to return the {thing}, it is too small",
            "the {thing} arrived broken and I would like to exchange it",
            "I sent the {thing} back on {day} and still have no refund",
            "the return label does not print",
            "is the {thing} still under warranty?",
            "wrong colour, please swap the {thing} for a blue one",
            "I changed my mind about {order}, can I give it back?",
            "the {thing} stopped working after {wait}, I want my money back",
            "do I have to pay postage when returning the {thing}?",
            "the zip of the {thing} tore after {wait}, can I get a replacement?",
            "how many days do I have for a return?",
        ),
        "technical": (
            "the app crashes on {device} when I open the basket",
            "the page shows error 500 since {day}",
            "I cannot upload a picture from {device}",
            "the search gives no results on {device}",
            "checkout hangs at the last step",
            "the pairing of the {thing} with {device} fails",
            "firmware update of the {thing} stops at 80%",
            "after the update everything is slow on {device}",
            "the buttons do not react on {device}",
            "the {thing} will not connect to wifi",
            "videos do not load on {device}",
            "the page is blank on {device}",
        ),
        "account": (
            "I cannot log in, the password link never comes",
            "please change my e-mail address",
            "how do I delete my account?",
            "someone else used my account on {day}",
            "my account is locked after {wait}",
            "the code by text message does not arrive",
            "I have two accounts, can you merge them?",
            "please remove me from the newsletter",
            "I want to know what data you keep about me",
            "change the name on my profile, I got married",
            "my user name is not recognised",
            "how do I turn on two-factor login?",
        ),
        "praise": (
            "the {thing} is wonderful, thank you",
            "best service I ever had",
            "so happy with {order}!",
            "your colleague on the phone was really kind",
            "everything arrived a day early, great work",
            "I love the {thing}, my sister wants one too",
            "thanks for sorting this out so fast",
            "five stars from me",
            "the {thing} is even better than the old one",
            "just wanted to say well done",
            "lovely packaging and a fair price",
            "I will order again, keep it up",
        ),
    },
    "de": {
        "billing": (
            "mir wurden für {order} zweimal {sum} abgebucht",
            "auf der Rechnung steht eine falsche Adresse",
            "ich brauche eine Rechnung für {order}",
            "der Gutschein wurde nicht abgezogen",
            "warum kostet das Abo jetzt {sum}?",
            "ich habe eine Mahnung bekommen, aber am {day} bezahlt",
            "kann ich per Überweisung oder in Raten zahlen?",
            "meine Kreditkarte wird abgelehnt",
        ),
        "delivery": (
            "wo bleibt {order}? Ich warte seit {wait}",
            "die Sendungsverfolgung zeigt seit {day} nichts Neues",
            "das Paket ist nie angekommen",
            "der Bote hat das Paket im Regen stehen lassen",
            "bitte liefern Sie an meine Büroadresse",
            "laut Status zugestellt, aber hier ist nichts",
            "im Karton fehlt die Hälfte",
            "wie lange dauert der Versand nach Österreich?",
        ),
        "returns": (
            "wie kann ich den Artikel zurückschicken ({thing})?",
            "{thing} kam kaputt an, ich möchte umtauschen",
            "ich habe {order} zurückgesandt und noch keine Erstattung",
            "das Rücksendeetikett lässt sich nicht drucken",
            "falsche Größe, bitte tauschen ({thing})",
            "gilt die Garantie noch? {thing} geht nach {wait} nicht mehr",
            "ich möchte {order} widerrufen",
            "wer zahlt das Porto der Rücksendung?",
        ),
        "technical": (
            "die App stürzt auf {device} ab",
            "die Seite zeigt seit {day} Fehler 500",
            "ich kann auf {device} kein Bild hochladen",
            "die Suche findet nichts",
            "der Warenkorb hängt beim letzten Schritt",
            "{thing} verbindet sich nicht mit dem WLAN",
            "nach dem Update ist alles langsam auf {device}",
            "die Knöpfe reagieren nicht auf {device}",
        ),
        "account": (
            "ich kann mich nicht anmelden, der Link für das Passwort kommt nicht",
            "bitte ändern Sie meine E-Mail-Adresse",
            "wie lösche ich mein Konto?",
            "mein Konto ist seit {wait} gesperrt",
            "jemand anderes hat mein Konto benutzt",
            "bitte keinen Newsletter mehr",
            "welche Daten speichern Sie über mich?",
            "der Code per SMS kommt nicht an",
        ),
        "praise": (
            "super Service, vielen Dank",
            "{thing}: einfach toll, gerne wieder",
            "ich bin sehr zufrieden mit {order}",
            "Ihre Kollegin am Telefon war sehr nett",
            "alles kam einen Tag früher, klasse",
            "fünf Sterne von mir",
            "schöne Verpackung, fairer Preis",
            "danke für die schnelle Hilfe",
        ),
    },
    "es": {
        "billing": (
            "me cobraron dos veces {order}",
            "¿por qué hay un cargo de {sum} en mi tarjeta?",
            "necesito la factura de {order}",
            "el cupón no se descontó",
            "la factura tiene un NIF equivocado",
            "recibí un aviso de pago pero pagué {day}",
            "¿puedo pagar a plazos o por transferencia?",
        ),
        "delivery": (
            "¿dónde está {order}? Llevo {wait} esperando",
            "el seguimiento no cambia desde {day}",
            "el paquete nunca llegó",
            "el repartidor fue a otra dirección",
            "dice entregado y aquí no hay nada",
            "falta la mitad del paquete",
            "¿cuánto tarda el envío a Canarias?",
        ),
        "returns": (
            "¿cómo devuelvo el artículo? ({thing})",
            "llegó roto y quiero cambiarlo ({thing})",
            "envié de vuelta {order} y no tengo el reembolso",
            "la etiqueta de devolución no se imprime",
            "es demasiado pequeño, quiero otra talla",
            "¿sigue en garantía? ({thing})",
            "quiero devolver {order}",
        ),
        "technical": (
            "la app se cierra en {device}",
            "la página muestra el error 500 desde {day}",
            "no puedo subir una foto desde {device}",
            "la búsqueda no encuentra nada",
            "el carrito se queda colgado al final",
            "no se conecta al wifi ({thing})",
            "después de actualizar va todo lento en {device}",
        ),
        "account": (
            "no puedo entrar, no llega el enlace de la contraseña",
            "cambien mi correo electrónico, por favor",
            "¿cómo borro mi cuenta?",
            "mi cuenta está bloqueada desde {day}",
            "alguien usó mi cuenta",
            "no quiero más boletines",
            "¿qué datos guardan sobre mí?",
        ),
        "praise": (
            "un servicio estupendo, gracias",
            "me encanta ({thing})",
            "muy contento con {order}",
            "su compañera fue muy amable por teléfono",
            "llegó un día antes, genial",
            "cinco estrellas",
            "gracias por resolverlo tan rápido",
        ),
    },
    "ja": {
        "billing": (
            "{order}の代金が二重に請求されています",
            "カードに{sum}の請求があるのはなぜですか",
            "{order}の領収書を送ってください",
            "クーポンが割引されていません",
            "請求書の金額が{sum}で合いません",
            "分割払いはできますか",
        ),
        "delivery": (
            "{order}はいつ届きますか。{wait}待っています",
            "荷物がまだ届きません",
            "追跡が{day}から動いていません",
            "配達員が違う住所に行きました",
            "配達済みとありますが何もありません",
            "箱に半分しか入っていませんでした",
        ),
        "returns": (
            "{thing}を返品したいです",
            "{thing}が壊れて届いたので交換してください",
            "{day}に返送しましたが返金がまだです",
            "サイズが小さいので取り替えたいです",
            "{thing}はまだ保証期間内ですか",
            "返品用のラベルが印刷できません",
        ),
        "technical": (
            "{device}でアプリが落ちます",
            "{day}からページにエラー500が出ます",
            "{device}から写真をアップロードできません",
            "検索しても何も出ません",
            "{thing}がWi-Fiにつながりません",
            "更新してから{device}がとても遅いです",
        ),
        "account": (
            "ログインできません。パスワードのメールが来ません",
            "メールアドレスを変更してください",
            "アカウントを削除したいです",
            "アカウントが{day}からロックされています",
            "メールマガジンを止めてください",
            "認証コードが届きません",
        ),
        "praise": (
            "{thing}がとても気に入りました。ありがとうございます",
            "素晴らしい対応でした",
            "{order}に大満足です",
            "電話の方がとても親切でした",
            "予定より早く届きました。最高です",
            "星五つです",
        ),
    },
}

BEFORE = {
    "en": ("Hi,", "Hello,", "Dear team,", "Good morning,", "hey", "Sorry to bother you again,", "Second message about this:", "URGENT:"),
    "de": ("Hallo,", "Guten Tag,", "Sehr geehrte Damen und Herren,", "Moin,", "Zum zweiten Mal:"),
    "es": ("Hola,", "Buenos días,", "Estimados señores:", "Otra vez yo:"),
    "ja": ("こんにちは。", "お世話になっております。", "すみません、", "再度ご連絡します。"),
}
AFTER = {
    "en": (
        "Thanks!",
        "Please help.",
        "What can I do?",
        "Kind regards, Sam",
        "Best, J. Okafor",
        "This is really annoying 😡",
        "Thank you 🙏",
        "I bought it on {day}.",
        "It was a gift.",
        "I paid with PayPal.",
        "It came with the post on {day}.",
        "I use {device} if that matters.",
        "Otherwise I am happy with the shop.",
        "😊",
    ),
    "de": (
        "Danke!",
        "Bitte um Hilfe.",
        "Mit freundlichen Grüßen, K. Weiß",
        "LG Jörg",
        "Das ist ärgerlich 😠",
        "Gekauft am {day}.",
        "Bezahlt habe ich mit PayPal.",
        "Sonst bin ich zufrieden.",
    ),
    "es": (
        "¡Gracias!",
        "Ayuda, por favor.",
        "Saludos, Íñigo",
        "Es muy molesto 😡",
        "Lo compré {day}.",
        "Pagué con PayPal.",
        "Por lo demás, todo bien.",
    ),
    "ja": ("よろしくお願いします。", "助けてください。", "困っています😢", "{day}に買いました。", "PayPalで払いました。"),
}
VAGUE = {
    "en": (
        "still no answer from you about {order}",
        "please call me back about the {thing}",
        "it is about {order}, you know which one",
        "same problem as {day}",
    ),
    "de": ("noch immer keine Antwort zu {order}", "bitte rufen Sie mich zurück ({thing})", "es geht um {order}"),
    "es": ("sigo sin respuesta sobre {order}", "llámenme, por favor ({thing})", "es sobre {order}"),
    "ja": ("{order}についてまだ返事がありません", "{thing}の件で電話をください"),
}
LINK = {"en": " and {}", "de": ", und {}", "es": " y {}", "ja": "。あと、{}"}


class Writer:
    """Draws messages; every draw is one `random()`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (nothing secret)

    def pick(self, options: tuple[str, ...]) -> str:
        """One of the options."""
        return options[int(self.random.random() * len(options))]

    def chance(self, share: float) -> bool:
        """True that often."""
        return self.random.random() < share

    def fill(self, template: str, language: str) -> str:
        """A template with words in its places."""
        for name, words in WORDS[language].items():
            while f"{{{name}}}" in template:
                template = template.replace(f"{{{name}}}", self.pick(words), 1)
        return template

    def message(self, language: str, topic: str) -> str:
        """A message about a topic."""
        core = self.pick(VAGUE[language]) if self.chance(0.01) else self.pick(CORES[language][topic])
        if self.chance(0.03):  # what a second topic says comes second, and does not count
            core += LINK[language].format(self.pick(CORES[language][self.pick(TOPICS)]))
        core = self.fill(core, language)
        if self.chance(0.6):
            core = core[0].upper() + core[1:]
        if core[-1] not in "?!。" and self.chance(0.8):
            core += "。" if language == "ja" else "." if self.chance(0.8) else "!!"
        blank = "" if language == "ja" else " "
        if self.chance(0.45):
            core = self.pick(BEFORE[language]) + blank + core
        if self.chance(0.5):
            core += blank + self.fill(self.pick(AFTER[language]), language)
        if language != "ja":
            core = self.typed(core)
        return core

    def typed(self, text: str) -> str:
        """As people type: a letter lost, doubled or swapped with the next one, all small, all capital, without accents."""
        for _ in range(int(len(text) / 60 + self.random.random())):
            at = 1 + int(self.random.random() * (len(text) - 3))
            if text[at : at + 2].isalpha() and self.chance(0.6):
                how = self.pick(("lost", "doubled", "swapped"))
                middle = {"lost": text[at], "doubled": text[at] + text[at : at + 2], "swapped": text[at + 1] + text[at]}[how]
                text = text[:at] + middle + text[at + 2 :]
        if self.chance(0.15):
            return text.lower()
        if self.chance(0.04):
            return text.upper()
        if self.chance(0.06):
            return text.replace("ü", "ue").replace("ä", "ae").replace("ö", "oe").replace("ß", "ss").replace("ñ", "n").replace("ó", "o")
        return text


def rows() -> list[tuple[str, str, str]]:
    """(language, message, topic), no message twice, in an order that says nothing."""
    writer = Writer(21)
    found: dict[str, tuple[str, str, str]] = {}
    for language, count in ROWS.items():
        have = len(found)
        while len(found) < have + count:
            topic = writer.pick(TOPICS)
            message = writer.message(language, topic)
            found.setdefault(message, (language, message, topic))
    keyed = sorted((writer.random.random(), row) for row in found.values())
    return [row for _, row in keyed]


def csv_text() -> str:
    """The file's text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["language", "message", "topic"])
    writer.writerows(rows())
    return out.getvalue()


if __name__ == "__main__":
    Path(__file__).with_name("messages.csv").write_bytes(csv_text().encode())
